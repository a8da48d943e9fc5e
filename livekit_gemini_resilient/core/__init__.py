"""The pure core: events and a time in, effects and a deadline out.

Nothing here imports asyncio, a clock, a random source, a logger, livekit or google (a test parses
the imports), so every race is an ordinary unit test.

Where a question lives:

==================  ==========================================================================
``events``          what the adapter may tell the core
``effects``         what the core may ask of the adapter
``delivery``        which result does the model have, and is a reply to it still due?
``evidence``        what of the wire says that a result arrived?
``record``          one call and what became of it
``telling``         how does a result reach the model on this connection?
``turn``            whose turn is it, and which generation does a frame belong to?
``turn_state``      the states of a turn, and what leads from one to the next
``rotation``        may the connection be replaced now?
``caller``          is the caller speaking, as far as anybody here can hear?
``transitions``     when does a tool run whose effect is another prompt or agent?
``settings``        which settings does the next setup carry, and what did the last one declare?
``changes``         by which way does a change of tools or instructions reach the server?
``link``            which connection is there, and what follows when it ends?
``recovery``        what is to be done about a failure?
``intake``          is a function output owed to the model, or is it history?
``history``         which part of the conversation does this connection not know?
``asking``          when is the model asked to speak, and what if it does not?
``suspects``        which of the things that were written last closed the connection?
``requests``        which ``generate_reply`` is under way?
``reports``         what the turn tracker reports
``speech``          what is the framework shown of all this?
``audience``        does anybody take what the model says?
``owed``            which replies did a closed session owe, and who takes them?
``uplink``          which user audio and video waits for a connection?
``behaviour``       what has this server been seen to do?
``prompts``         how are words of ours put before the model?
``wording``         every sentence that this package puts before a model
``errors``          the exceptions, drawn as a tree
``parts``           which parts has a conversation, and which of them know one another?
``floor``           may words of ours go out now, and what holds them?
``reception``       what does one frame of the server change?
``succession``      what does one connection leave to the next?
``conversation``    what follows from each event, and in which order are things written?
==================  ==========================================================================
"""

"""What type checkers say of the model's constructor: run ``mypy`` on this file.

An error that is not there any more is an error too: ``strict`` objects to an ignore without use.
"""

from livekit_gemini_resilient import RealtimeModel, ResilienceOptions

PATIENT = ResilienceOptions(reply_timeout=20)

RealtimeModel()
RealtimeModel(voice="Puck", temperature=0.5)
RealtimeModel(resilience=PATIENT)
RealtimeModel(voice="Puck", resilience=PATIENT)
RealtimeModel(voice=4711)  # type: ignore[call-overload]
RealtimeModel(voic="Puck")  # type: ignore[call-overload]
RealtimeModel("Puck")  # type: ignore[call-overload]
RealtimeModel(resilience={"reply_timeout": 20})  # type: ignore[call-overload]

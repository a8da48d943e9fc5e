"""From what is a connection set up, and what does the one that is there declare?"""

from __future__ import annotations

import dataclasses
from contextlib import AbstractAsyncContextManager
from typing import Any

from google.genai import types
from google.genai.live import AsyncSession
from livekit.agents import llm
from livekit.agents.utils import is_given
from livekit.plugins.google import utils as tools_config
from livekit.plugins.google.realtime import realtime_api as plugin

from ..core.events import RestartCause, ToolsLeftOut
from ..core.wording import clean
from .model import PluginModel


class SetupSession(plugin.RealtimeSession):
    """Upstream's session, cut down to options, tools, instructions and the setup made of them.

    Args:
        realtime_model: The model whose options the session copies: upstream shares one object
            between all sessions, so that a change to one leaks into the others.
    """

    def __init__(self, realtime_model: PluginModel) -> None:
        super().__init__(realtime_model)
        # the model's update_options goes through these
        realtime_model._sessions.add(self)
        self._opts = dataclasses.replace(realtime_model._opts)
        if is_given(self._opts.instructions):
            self._opts.instructions = clean(self._opts.instructions)
        self._declared: llm.ToolContext | None = None
        self._built: tuple[Any, llm.ToolContext, types.LiveConnectConfig] | None = None
        self._setup: types.LiveConnectConfig | None = None
        self._accepted: tuple[types.LiveConnectConfig, llm.ToolContext] | None = None
        self._left_out: frozenset[str] = frozenset()
        self._withdrawn: frozenset[str] = frozenset()

    def _connect(
        self,
        handle: str | None,
        *,
        announces_history: bool,
        as_accepted: bool,
        without: frozenset[str],
    ) -> AbstractAsyncContextManager[AsyncSession]:
        """A connection that is set up from the options, tools and instructions as they are now.

        Args:
            handle: Resume from here; ``None`` for a fresh session.
            announces_history: Client content comes first, as history.
            as_accepted: Set it up as the last one that was accepted, if there is one.
            without: Functions that are not declared otherwise, by name.

        Raises:
            Exception: Whatever upstream raises for tools or options that it cannot express.
        """
        if as_accepted and self._accepted is not None:
            self._setup, self._declared = self._accepted
        else:
            self._setup, self._declared = self._settings(), self._tools.copy()
            if without:
                self._leave_out(self._setup, without)
        self._withdrawn = frozenset()
        self._session_resumption_handle = handle
        config = self._setup.model_copy()
        config.session_resumption = types.SessionResumptionConfig(handle=handle)
        if announces_history:
            config.history_config = types.HistoryConfig(initial_history_in_client_content=True)
        return self._client.aio.live.connect(model=self._opts.model, config=config)

    def _settings(self) -> types.LiveConnectConfig:
        """A copy of the setup as it is now, but for the handle and the history."""
        return self._build().model_copy(deep=True)

    def _build(self) -> types.LiveConnectConfig:
        """That setup itself, which stays as it is.

        Built once for the same options and tools: that takes about 1 ms per tool, ten times as long
        as a copy, and a change asks for it up to three times.
        """
        if self._built is None or self._built[:2] != (self._opts, self._tools):
            config = self._build_connect_config().model_copy(update={"session_resumption": None})
            self._built = (dataclasses.replace(self._opts), self._tools.copy(), config)
        return self._built[2]

    def _leave_out(self, setup: types.LiveConnectConfig, names: frozenset[str]) -> None:
        """Declare a setup's functions but for some."""
        for tool in setup.tools or ():
            if isinstance(tool, types.Tool) and tool.function_declarations:
                kept = [d for d in tool.function_declarations if d.name not in names]
                tool.function_declarations = kept or None
        setup.tools = [t for t in setup.tools or () if t != types.Tool()]
        functions = self._tools.function_tools
        kept_tools = [tool for name, tool in functions.items() if name not in names]
        self._declared = llm.ToolContext([*kept_tools, *self._tools.provider_tools])

    def _why_unusable(self) -> str | None:
        """Why no setup can be made of options, tools and instructions; ``None`` if one can."""
        try:
            self._build()
        except Exception as e:
            return one_line(e)
        return None

    @property
    def _can_update_in_place(self) -> bool:
        """Whether the SDK can change tools and instructions of a connection (3.x)."""
        return hasattr(AsyncSession, "send_context_update")

    async def _update_in_place(self, connection: AsyncSession) -> None:
        """Send the tools and the instructions as they are now."""
        settings = self._settings()
        if self._declared is not None:
            # a call of one of them may be on its way
            self._withdrawn |= self._declared.function_tools.keys()
        self._declared = self._tools.copy()
        update: Any = connection
        await update.send_context_update(
            system_instruction=settings.system_instruction, tools=settings.tools or []
        )

    def _setup_accepted(self) -> None:
        """The server answered the setup."""
        if self._setup is not None and self._declared is not None:
            self._accepted = (self._setup, self._declared)

    @property
    def _is_new_setup(self) -> bool:
        """Whether the setup is another than the one that was accepted last."""
        return self._accepted is None or self._setup != self._accepted[0]

    @property
    def _new_functions(self) -> frozenset[str]:
        """Functions in the setup that are new or have changed since one was accepted."""
        declared = self._declared.function_tools if self._declared else {}
        accepted = self._accepted[1].function_tools if self._accepted else {}
        return frozenset(name for name, tool in declared.items() if accepted.get(name) != tool)

    @property
    def _functions_in_setup(self) -> tuple[tuple[str, ...], ...]:
        """Names of the functions in each entry of the setup's tools, in order."""
        return tuple(tuple(each.name or "" for each in entry) for entry in self._declarations)

    @property
    def _declarations(self) -> list[list[types.FunctionDeclaration]]:
        """What each entry of the setup's tools declares."""
        tools = (self._setup.tools if self._setup else None) or ()
        return [getattr(tool, "function_declarations", None) or [] for tool in tools]

    @property
    def _tools_block(self) -> bool:
        """Whether the setup declares anything but NON_BLOCKING tools; options that have changed
        since, or were refused, are not in it."""
        declared = {each.behavior for entry in self._declarations for each in entry}
        if not declared:
            return bool(self._opts.tool_behavior != types.Behavior.NON_BLOCKING)
        return declared != {types.Behavior.NON_BLOCKING}

    # ------------------------------------------------------------ what the options say

    @property
    def _first_handle(self) -> str | None:
        """The resumption handle that the user supplied."""
        return self._session_resumption_handle

    @property
    def _conn_options(self) -> Any:
        """Retry budget and interval."""
        return self._opts.conn_options

    @property
    def _refuses_calls(self) -> bool:
        """Whether ``tool_choice="none"`` is in force; the service has no such option."""
        return bool(self._opts.tool_choice == "none")

    @property
    def _may_stay_silent(self) -> bool:
        """Whether the setup lets the model decide whether to answer (proactive audio)."""
        return bool(is_given(self._opts.proactivity) and self._opts.proactivity)

    @property
    def _can_announce_history(self) -> bool:
        """Whether the setup can say that client content comes first, as history; older versions
        of the SDK refuse that for Vertex AI."""
        return not self._opts.vertexai

    @property
    def _takes_instructions_by_turn(self) -> bool:
        """On Vertex AI a ``system`` turn replaces the instruction (documented)."""
        return bool(self._opts.vertexai)

    # ------------------------------------------------------------ what changes

    def _set_instructions(self, instructions: str) -> bool:
        """Take a new instruction; ``False`` if it is the old one."""
        instructions = clean(instructions)
        if is_given(self._opts.instructions) and self._opts.instructions == instructions:
            return False
        self._opts.instructions = instructions
        return True

    def _declarable(self, tools: list[Any]) -> tuple[list[Any], ToolsLeftOut | None]:
        """The tools that can be declared, and news of those that cannot."""
        reasons: dict[str, str] = {}
        usable = []
        for tool in llm.ToolContext(tools).flatten():
            single = llm.ToolContext([tool])
            try:
                tools_config.create_tools_config(
                    single,
                    tool_behavior=self._opts.tool_behavior,
                    use_parameters_json_schema=False,
                )
            except Exception as e:
                name = next(iter(single.function_tools), type(tool).__name__)
                reasons[name] = one_line(e)
            else:
                usable.append(tool)
        known, self._left_out = self._left_out, frozenset(reasons)
        if self._left_out <= known:
            return usable, None
        return usable, ToolsLeftOut(names=tuple(reasons), reason=next(iter(reasons.values())))

    def _set_tools(self, tools: list[Any]) -> RestartCause | None:
        """Take new tools; what a new connection is needed for, ``None`` for nothing."""
        context = llm.ToolContext(tools)
        if self._tools == context:
            return None
        self._tools = context
        declared = self._declared
        if declared is None or declared.provider_tools != context.provider_tools:
            return RestartCause.TOOLS
        functions = declared.function_tools
        if any(functions.get(name) != tool for name, tool in context.function_tools.items()):
            return RestartCause.TOOLS
        return RestartCause.FEWER_TOOLS if self._removed_functions else None

    @property
    def _removed_functions(self) -> frozenset[str]:
        """Functions that the connection declares and that are not among the tools any more."""
        if self._declared is None:
            return frozenset()
        declared = self._withdrawn | self._declared.function_tools.keys()
        return frozenset(declared - self._tools.function_tools.keys())


def one_line(error: BaseException) -> str:
    """What an exception says, in one line of at most 200 characters."""
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())[:200]

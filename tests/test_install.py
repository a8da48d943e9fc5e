"""``install()``: ours under the plugin's own names."""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest
from livekit.plugins import google
from livekit.plugins.google import beta
from livekit.plugins.google.realtime import realtime_api

from livekit_gemini_resilient import (
    ConfigurationError,
    RealtimeModel,
    ResilienceOptions,
    install,
    uninstall,
)
from livekit_gemini_resilient.testing import Call, GeminiLiveServer, Say

from .direct import Direct, get_weather

PLAIN = google.realtime.RealtimeModel
PATIENT = ResilienceOptions(reply_timeout=33.0)


@pytest.fixture(autouse=True)
def nothing_stays_installed() -> Iterator[None]:
    """The names are the plugin's before and after every test."""
    assert exported() == {PLAIN}
    yield
    uninstall()


def exported() -> set[object]:
    """Whatever the plugin calls ``RealtimeModel``, in any of its modules."""
    prefix = google.__name__ + "."
    names = [module.name for module in pkgutil.walk_packages(google.__path__, prefix)]
    modules = [google, beta, *(importlib.import_module(name) for name in names)]
    found = [vars(module)["RealtimeModel"] for module in modules if "RealtimeModel" in vars(module)]
    assert len(found) >= 2
    return set(found)


def test_every_name_of_the_plugins_model_is_ours_until_it_is_uninstalled() -> None:
    """``google.realtime``, ``google.beta.realtime`` and the module that defines the class."""
    install()
    assert exported() == {RealtimeModel}
    assert beta.realtime.RealtimeModel is RealtimeModel
    uninstall()
    assert exported() == {PLAIN}


def test_installing_twice_is_installing_once() -> None:
    """One ``uninstall`` ends it, and another does nothing."""
    install()
    install()
    assert exported() == {RealtimeModel}
    uninstall()
    uninstall()
    assert exported() == {PLAIN}


def test_the_end_of_the_block_puts_back_what_was_there_before_it() -> None:
    """Blocks nest, also after an error."""
    with install():
        with contextlib.suppress(ZeroDivisionError), install(resilience=PATIENT):
            assert exported().isdisjoint({PLAIN, RealtimeModel})
            raise ZeroDivisionError
        assert exported() == {RealtimeModel}
    assert exported() == {PLAIN}


def test_a_model_made_through_it_is_an_instance_of_the_plugins_class() -> None:
    """Of that which the name held before, and of that which it holds now."""
    with install(resilience=PATIENT):
        model = google.realtime.RealtimeModel(api_key="any")
        assert isinstance(model, google.realtime.RealtimeModel)
    assert isinstance(model, PLAIN)
    assert isinstance(model, RealtimeModel)


async def test_a_session_made_through_it_is_an_instance_of_the_plugins_class() -> None:
    """Code that looks for the plugin's session finds it."""
    async with GeminiLiveServer() as server:
        with install():
            session = google.realtime.RealtimeModel(**server.model_options()).session()
        assert isinstance(session, realtime_api.RealtimeSession)
        await server.connected()
        await session.aclose()


def test_options_given_to_install_are_the_default_of_models_made_through_it() -> None:
    """A model's own options win; a model that is made under our name does not know of them."""
    own = ResilienceOptions(reply_timeout=44.0)
    with install(resilience=PATIENT):
        made = google.realtime.RealtimeModel
        assert made(api_key="any").resilience == PATIENT
        assert made(api_key="any", resilience=own).resilience == own
        assert RealtimeModel(api_key="any").resilience == ResilienceOptions()
        install()
        assert google.realtime.RealtimeModel(api_key="any").resilience == ResilienceOptions()


def test_wrong_options_are_refused_where_they_are_given() -> None:
    """Nothing is installed then."""
    with pytest.raises(ConfigurationError, match="expected a ResilienceOptions"):
        install(resilience={"reply_timeout": 33.0})  # type: ignore[arg-type]
    assert exported() == {PLAIN}


async def test_a_result_survives_a_drop_with_a_model_made_under_the_plugins_name() -> None:
    """It is ours in deed, not only in name."""
    script = [Call("get_weather", {}), Say("It is foggy.")]
    async with GeminiLiveServer(script) as server:
        with install():
            model = google.realtime.RealtimeModel(**server.model_options())
        direct = Direct(model.session())
        direct.listen()
        await direct.session.update_tools([get_weather])
        await server.connected()
        await server.caller_says("What is the weather?")
        call = await direct.call()
        await server.drop()
        await direct.answer(call, "foggy and 12 degrees")
        reply = await server.replied()
        assert reply.knew("foggy and 12 degrees")
        await direct.session.aclose()


def test_importing_the_package_installs_nothing() -> None:
    """In a process of its own: nothing happens but by the call."""
    code = (
        "from livekit.plugins import google\n"
        "plain = google.realtime.RealtimeModel\n"
        "import livekit_gemini_resilient\n"
        "assert google.realtime.RealtimeModel is plain\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=180)


def test_a_name_taken_before_keeps_the_plugins_class() -> None:
    """The order matters: install first. Nothing reaches into other modules."""
    from livekit.plugins.google.realtime import RealtimeModel as taken_before

    install()
    from livekit.plugins.google.realtime import RealtimeModel as taken_after

    assert (taken_before, taken_after) == (PLAIN, RealtimeModel)

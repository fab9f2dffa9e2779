"""Modes as prompts (slash commands, in most editors), and the handing over of a task from one mode to the next."""

from collections.abc import Sequence

from modes_actor.actor.context import RequestContext
from modes_actor.modes.catalog import ModeCatalog
from modes_actor.sessions.model import iso_time
from modes_actor.sessions.sessions import check_session_id
from modes_actor.surface.house import House, check_slug
from modes_actor.wire.content import TextContent
from modes_actor.wire.prompts import GetPromptResult, Prompt, PromptArgument, PromptMessage

HANDOFF = "handoff"

_TASK = PromptArgument("task", title="Task", description="What to do in this mode", required=False)
_HANDOFF = Prompt(
    name=HANDOFF,
    title="Hand over a task",
    description="Summarise a task for the mode that goes on with it",
    arguments=[
        PromptArgument("session_id", title="Session", description="Session ID of the task", required=True),
        PromptArgument("to_mode", title="Mode", description="Slug of the mode to hand over to", required=True),
    ],
)


class ModePrompts:
    def __init__(self, house: House) -> None:
        self._house = house
        self._listed: tuple[ModeCatalog, list[Prompt]] | None = None

    def prompts(self) -> Sequence[Prompt]:
        """Every mode, then the hand-over. A mode of that name is still a mode: its prompt comes first and counts."""
        catalog = self._house.catalog
        if self._listed is None or self._listed[0] is not catalog:
            modes = [
                Prompt(name=mode.slug, title=mode.name, description=mode.description or mode.name, arguments=[_TASK])
                for mode in catalog
            ]
            self._listed = catalog, modes if catalog.get(HANDOFF) else [*modes, _HANDOFF]
        return self._listed[1]

    def get(self, prompt: Prompt, arguments: dict[str, str], context: RequestContext) -> GetPromptResult:
        if prompt is _HANDOFF:
            return self._hand_over(arguments["session_id"], arguments["to_mode"])
        mode = self._house.mode(prompt.name)
        text = self._house.system_prompt(mode)
        if task := arguments.get("task", "").strip():
            text = f"{text}\n# Task\n\n{task}\n"
        return GetPromptResult([PromptMessage("user", TextContent(text))], f"{mode.name} mode")

    def _hand_over(self, session_id: str, slug: str) -> GetPromptResult:
        check_session_id(session_id)
        check_slug(slug, parameter="to_mode")
        sessions = self._house.sessions
        session = sessions.get(session_id)
        mode = self._house.mode(slug, parameter="to_mode")
        record = sessions.record(session, hierarchy=False)
        task = session.task
        history = [
            f"- {iso_time(each.timestamp)}: {each.mode}" + (f" ({each.reason})" if each.reason else "")
            for each in record.history
        ]
        messages = [f"- {each.role}: {each.content}" for each in record.messages or ()]
        subtasks = [
            f"- {child.task.task_id} in {child.task.mode}: {child.task.state}" for child in sessions.children(session)
        ]
        sections = [
            f"You take over a task from {task.mode} mode, in {mode.slug} mode ({mode.name}).",
            f"Session: {session_id}\nTask: {task.task_id}\nState: {task.state}",
            "Modes so far:\n" + "\n".join(history),
            "What was said:\n" + ("\n".join(messages) or "- nothing"),
            "Subtasks:\n" + ("\n".join(subtasks) or "- none"),
            f"First call switch_mode with session_id {session_id} and new_mode_slug {mode.slug}. Then go on where the"
            " task stands, and do not repeat what is done.",
        ]
        text = "\n\n".join(sections)
        return GetPromptResult([PromptMessage("user", TextContent(text))], f"Hand over to {mode.name}")

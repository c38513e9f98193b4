"""The page of the command line: what each subcommand's own parser knows of it."""

import argparse
from textwrap import fill

from docsite.docstrings import as_markdown
from tilework.tools.cli import SUBCOMMANDS, parser_of


def pages() -> dict[str, str]:
    """The page, by its path in the site."""
    parts = ["# Commands and options", "What `tilework COMMAND --help` says; [with examples](../command-line.md)."]
    rows = [f"| [`tilework {name}`](#tilework-{name}) | {summary} |" for name, summary in SUBCOMMANDS.items()]
    parts.append("\n".join(["| | |", "|---|---|", *rows]))
    for name in SUBCOMMANDS:
        parser = parser_of(name)
        words = " ".join(parser.format_usage().removeprefix("usage: ").split())
        usage = fill(words, 90, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
        parts += [f"## tilework {name}", f"```text\n{usage}\n```", as_markdown(parser.description), options(parser)]
    return {"reference/command_line.md": "\n\n".join(parts)}


def options(parser: argparse.ArgumentParser) -> str:
    """A row for each argument and option; those of subcommands follow, with the subcommand."""
    rows: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                rows += [f"| `{name}` | {inner.description or helps(action, name)} |", *rows_of(inner, f"{name} ")]
    return "\n".join(["| option | meaning |", "|---|---|", *rows_of(parser), *rows])


def rows_of(parser: argparse.ArgumentParser, before: str = "") -> list[str]:
    return [
        f"| {', '.join(f'`{before}{name}`' for name in names_of(action))} | {meaning(action)} |"
        for action in parser._actions
        if action.help != argparse.SUPPRESS
        and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]


def names_of(action: argparse.Action) -> list[str]:
    """``--target TARGET``, as help texts write it."""
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        return [value if action.metavar or action.choices else action.dest]
    return [name if action.nargs == 0 else f"{name} {value}" for name in action.option_strings]


def meaning(action: argparse.Action) -> str:
    """The help text; `%(default)s` and the like are filled in."""
    text = (action.help or "") % {"default": action.default, "prog": "tilework", "choices": action.choices}
    return text.replace("|", "\\|")


def helps(action: argparse.Action, name: str) -> str:
    return next((str(one.help or "") for one in getattr(action, "_choices_actions", ()) if one.dest == name), "")

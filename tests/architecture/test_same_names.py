"""Each command is a shell around a public function: its options are parameters of that name."""

import inspect

import pytest
import typer

import headwise
from headwise.attention import compare_ranks
from headwise.cli.app import app
from headwise.data import find_sets
from headwise.papers.reproduce import stored_exhibits
from headwise.web import serve

COMMANDS = typer.main.get_command(app).commands

#: What each command calls. A trial of built-in models and one of own models are two functions.
FUNCTIONS = {
    "advise": (headwise.advise,),
    "trial": (headwise.trial, headwise.trial_of),
    "rank": (headwise.rank,),
    "scan": (headwise.scan,),
    "reduce": (headwise.reduce,),
    "law": (headwise.law,),
    "bound": (headwise.bound,),
    "reproduce": (headwise.reproduce,),
    "report": (stored_exhibits,),
    "data": (find_sets,),
    "serve": (serve,),
    "demo": (compare_ranks,),
}

#: Options about printing and files, for which results have methods.
PRINTING = {"json", "html", "plot", "csv"}

#: Other options without a parameter: another spelling of SOURCE, and what ``Advice.show``,
#: ``Advice.export`` and ``list_exhibits`` do.
COMMAND_ONLY = {
    "advise": {"data", "explain", "export"},
    "reproduce": {"list"},
    "serve": {"no_browser"},  # a flag, for `browser=False`
}

#: Parameters that take Python objects, or that concern only callers in Python.
PYTHON_ONLY = {
    "trial": {"validation"},
    "scan": {"inputs", "against", "longest_dense", "dtype"},
    "reduce": {"tokenizer"},
    "reproduce": {"command"},
    "serve": {"browser"},
}

#: Defaults that differ: a text for a number, a flag for a seed, a folder where the command prints
#: the path of the report, and arguments that Python requires.
OTHER_DEFAULTS = {
    *(("rank", "tolerance"), ("scan", "random"), ("reproduce", "out"), ("report", "out")),
    *(("report", "exhibits"), ("reproduce", "exhibits"), ("trial", "source")),
}


def spelling(one: typer.core.TyperOption | typer.core.TyperArgument) -> str:
    """An option or argument of a command, spelled as a parameter."""
    named = one.name if one.param_type_name == "argument" else one.opts[0]
    return named.removeprefix("--").replace("-", "_")


def options_of(verb: str) -> set[str]:
    """The options and arguments of a command, spelled as parameters."""
    found = set(map(spelling, COMMANDS[verb].params))
    return found - {"help"} - PRINTING - COMMAND_ONLY.get(verb, set())


def parameters_of(functions: tuple, verb: str) -> set[str]:
    found = set().union(*(inspect.signature(function).parameters for function in functions))
    return found - {"progress"} - PYTHON_ONLY.get(verb, set())


def test_every_command_is_compared():
    assert FUNCTIONS.keys() == COMMANDS.keys()


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_options_are_parameters_of_the_same_name(verb):
    assert options_of(verb) == parameters_of(FUNCTIONS[verb], verb)


@pytest.mark.parametrize("verb", FUNCTIONS)
def test_options_have_the_defaults_of_the_parameters(verb):
    parameters = inspect.signature(FUNCTIONS[verb][0]).parameters
    differing = {
        (verb, name)
        for one in COMMANDS[verb].params
        if (name := spelling(one)) in parameters
        and (one.required, one.default) != (False, parameters[name].default)
        and (one.required, parameters[name].default) != (True, inspect.Parameter.empty)
    }
    assert differing == {other for other in OTHER_DEFAULTS if other[0] == verb}


NAMED_OTHERWISE = {"report", "data", "serve", "demo"}


@pytest.mark.parametrize("verb", sorted(FUNCTIONS.keys() - NAMED_OTHERWISE))
def test_the_function_is_called_as_the_command(verb):
    assert FUNCTIONS[verb][0] is getattr(headwise, verb)


def test_a_renamed_parameter_would_be_noticed():
    def bound(width, rank, number_of_heads=None, error=None, values="any"):
        pass

    assert options_of("bound") ^ parameters_of((bound,), "bound") == {"heads", "number_of_heads"}


@pytest.mark.parametrize("listed", [COMMAND_ONLY, PYTHON_ONLY])
def test_no_exception_is_left_over(listed):
    for verb, names in listed.items():
        options = set(map(spelling, COMMANDS[verb].params))
        assert names <= options | parameters_of(FUNCTIONS[verb], "")


def test_a_report_is_html_and_out_a_folder():
    with_page = {verb for verb in COMMANDS if "--html" in spelled(verb)}
    with_folder = {verb for verb in COMMANDS if "--out" in spelled(verb)}
    assert with_page == {"advise", "trial", "scan", "reduce"}
    assert with_folder == {"reduce", "reproduce", "report"}


def spelled(verb: str) -> set[str]:
    return {option for one in COMMANDS[verb].params for option in one.opts}

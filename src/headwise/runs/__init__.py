"""Run work and store its results: specs, stores, executors. Knows no mathematics."""

from headwise.runs.driver import Tally, run
from headwise.runs.executors import ClusterExecutor, Executor, LocalExecutor
from headwise.runs.locations import DEFAULT_STORE
from headwise.runs.outcome import Answer, Failure, Outcome
from headwise.runs.plan import Plan
from headwise.runs.provenance import Provenance, command_line, device
from headwise.runs.record import Record, Records
from headwise.runs.record_files import read_records, write_records
from headwise.runs.scratch import scratch, scratch_beside, sweep
from headwise.runs.spec import Row, Spec, parsed_spec
from headwise.runs.spec_files import read_specs
from headwise.runs.store import Store

__all__ = [
    "DEFAULT_STORE",
    "Answer",
    "ClusterExecutor",
    "Executor",
    "Failure",
    "LocalExecutor",
    "Outcome",
    "Plan",
    "Provenance",
    "Record",
    "Records",
    "Row",
    "Spec",
    "Store",
    "Tally",
    "command_line",
    "device",
    "parsed_spec",
    "read_records",
    "read_specs",
    "run",
    "scratch",
    "scratch_beside",
    "sweep",
    "write_records",
]

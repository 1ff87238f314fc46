"""What a run tells about failures."""

from headwise.progress import NoProgress
from headwise.runs import Failure, Store, run
from headwise.runs.attempt import attempt
from runs.questions import Cube


class Failing:
    """An executor whose every outcome is a failure."""

    def __init__(self, reason):
        self.reason = reason

    def outcomes(self, specs, begun):
        for spec in specs:
            yield Failure(spec.key, self.reason(spec), attempt(spec).provenance)

    def close(self):
        pass


class Told(NoProgress):
    """Keeps what was logged."""

    def __init__(self):
        self.lines = []

    def log(self, line):
        self.lines.append(line)


def failures(tmp_path, reason):
    told = Told()
    with Store.open(tmp_path / "results.db") as store:
        plan = store.plan([Cube(number=number) for number in range(4)])
        assert run(plan, Failing(reason), store, progress=told).failed == 4
    return told.lines


def test_failures_for_one_reason_are_one_line_and_a_count(tmp_path):
    first, last = failures(tmp_path, lambda spec: "the file is damaged; download it again")
    assert first.startswith("failed: ")
    assert first.endswith("the file is damaged; download it again")
    assert last.startswith("3 more failed for the same reason: the file is damaged")


def test_failures_for_different_reasons_are_all_told(tmp_path):
    found = failures(tmp_path, lambda spec: f"number {spec.number}")
    assert len(found) == 4
    assert all(line.startswith("failed: ") for line in found)

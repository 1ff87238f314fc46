"""What is to run on one H200, in calls of at most ten minutes: data alone, no code.

``python -m benchmarks.gpu_session`` runs a call. A call brings at most 64 MiB, and CIFAR-10 takes
97 MiB, so it arrives with the first three calls; it stays while the machine is kept. SVHN and
CIFAR-100 have a call each, since together with the tree they are 63.7 MiB.

A line of a job is a line of bash. ``{python}`` is the interpreter, ``{folder}`` the folder of the
job, ``{rows}`` its rows, ``{minutes}`` and ``{seconds}`` the time that is left. What follows
`` :: `` is added in a trial on a CPU; a line that begins with ``:: `` runs in no trial.

The seconds are of one H200 that does nothing else. They come from ``seconds`` and
``tokens_per_second`` of recorded rows, where the comment says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """One process, or several one after another.

    ``first`` jobs end before the others begin, and run without MPS. A ``low`` one gives way to
    the others. What a job ``needs`` must be there, or it is left out. Its rows are added to the
    file ``into`` of those that come back. ``seconds`` is how long it is expected to take.
    """

    name: str
    lines: tuple[str, ...]
    seconds: float
    into: str = ""
    needs: tuple[str, ...] = ()
    first: bool = False
    low: bool = False


@dataclass(frozen=True)
class Call:
    """Jobs that run side by side, and the folders that they need from here.

    ``goes_on`` says whether what earlier calls did not finish is taken up beside its own jobs.
    """

    about: str
    minutes: float
    carry: tuple[str, ...]
    jobs: tuple[Job, ...]
    goes_on: bool = False


WHEELS = "local/gpu/wheels"
CIFAR10 = tuple(f"local/realdata/cifar10-{part}" for part in (1, 2, 3))
CODE, PROSE = "local/language/code.npz.xz", "local/language/prose.npz.xz"
OTHERS = ("svhn", "cifar100")
TEXTS = tuple(f"local/advice-data/{name}.npz.xz" for name in ("packages", "libraries"))

#: How each carried path is made here, in this order; {sets} holds get.py, which fetches the sets.
PREPARE = {
    WHEELS: "{python} -m pip download -q --no-deps --only-binary=:all: --python-version 3.12"
    " --platform manylinux2014_x86_64 --platform any -d local/gpu/wheels hypothesis beartype kornia"
    " sortedcontainers pytest-xdist execnet pytest-benchmark py-cpuinfo"
    " && echo 'io = None' > local/gpu/wheels/kornia_rs.py",
    "local/official/cifar10": "{python} {sets}/get.py cifar10 local/official/cifar10",
    "local/official/imdb": "{python} {sets}/get.py imdb local/official/imdb",
    # Twelve files in folders of four, three and five: the second call brings prose too.
    CIFAR10[2]: "{python} -m benchmarks.packed_data --from local/official/cifar10"
    " --out local/realdata --sets cifar10"
    " && mv local/realdata/cifar10-2/x_train.35000.npy.xz local/realdata/cifar10-3",
    CODE: "{python} -m benchmarks.advice.corpora --imdb local/official/imdb --out local/language",
    **{
        f"local/official/{name}": f"{{python}} {{sets}}/get.py {name} local/official/{name}"
        for name in OTHERS
    },
    **{
        f"local/realdata/{name}-1": "{python} -m benchmarks.packed_data --sets"
        f" {name} --from local/official/{name} --out local/realdata"
        for name in OTHERS
    },
    **{
        f"local/advice-data/{name}.npz.xz": "{python} -m benchmarks.advice.datasets"
        f" --{name} local/official/{name} --out local/advice-data"
        for name in OTHERS
    },
    # Debian alone has these descriptions.
    TEXTS[0]: "apt-cache pkgnames | sort | xargs apt-cache -o Acquire::Languages=en show"
    " > local/packages.txt && {python} -m benchmarks.advice.datasets"
    " --packages local/packages.txt --out local/advice-data --libraries"
    " $({python} -c 'import sysconfig; print(sysconfig.get_path(\"purelib\"))')",
}

_PYTEST = "{python} -m pytest -q -rs"
_STREAMING = f"{_PYTEST} -p no:xdist tests/attention/test_streaming_triton.py"
_TRIAL = "--device cpu --execution eager --tiny --epochs 1 --most 400"
_REAL = (
    "{python} -m benchmarks.real_data --execution compiled --device cuda --data local/realdata"
    " --rows {rows} --checkpoints {folder}/checkpoints --minutes {minutes}"
)
_SWEEP = (
    "{python} -m benchmarks.advice.sweep --sweeps width --device cuda --data local/advice-data"
    " --rows {rows} --checkpoints {folder}/checkpoints --together 2 --seconds {seconds}"
    " --known benchmarks/advice/records/rows_vision_h200_202611.jsonl"
)
_LANGUAGE = (
    "{python} -m benchmarks.advice.language --device cuda --compile no --rows {rows}"
    " --save-seconds 60"
    " --checkpoints {folder}/checkpoints --minutes {minutes}"
    " --known benchmarks/advice/records/language_h200_*.jsonl"
)
_WORDS = "--device cpu --tiny --seeds 0 --lengths 10"


def _language(name: str, jobs: str, seconds: float, more: str = "", low: bool = False) -> Job:
    line = f"{_LANGUAGE} --jobs {jobs} {more} :: {_WORDS}"
    needs = tuple(path for word, path in (("code", CODE), ("prose", PROSE)) if word in jobs)
    return Job(name, (line,), seconds, "language.jsonl", needs, low=low)


def _attack(name: str, processes: str, more: str, first: bool = False) -> Job:
    """Counts on idle cores; on the GPU too only where no training shares it."""
    line = (
        f"{{python}} -m benchmarks.attack.many --processes {processes} {more}"
        " --out {folder}/attack.json :: --processes cpu=1 --minutes 0.1"
    )
    return Job(name, (line,), 0, first=first)


def _split(task: str) -> Job:
    """Four splits and three seeds: a pair of splits took 50 to 96 s beside others (CIFAR-10)."""
    line = f"{_SWEEP} --tasks {task} :: --device cpu --steps 2 --ranks 4 --seeds 0 --together 1"
    data = f"local/advice-data/{task}.npz.xz"
    return Job(f"splits-{task}", (line,), 150, "rows_vision.jsonl", (data,))


def _texts() -> Job:
    """Seven splits of two tasks with three seeds: those of imdb took 75 s."""
    tasks = "--tasks code-libraries,package-sections"
    line = f"{_SWEEP} {tasks} :: --device cpu --steps 2 --ranks 1 --seeds 0 --together 1"
    return Job("texts", (line,), 150, "rows_text.jsonl", TEXTS, low=True)


def _advised(dataset: str, seconds: float, needs: tuple[str, ...], low: bool = True) -> Job:
    line = f"{_REAL} --runs {dataset}-advised --seeds 0,1 :: {_TRIAL}"
    return Job(f"advised-{dataset}", (line,), seconds, "real_advised.jsonl", needs, low=low)


CALLS = {
    1: Call(
        "the mended kernels for long sequences; language models on code",
        5,
        (WHEELS, CIFAR10[0], CODE),
        (
            Job(
                "kernels",
                (
                    _STREAMING,
                    ":: command -v compute-sanitizer || echo compute-sanitizer is not installed",
                    ":: ! command -v compute-sanitizer || env PYTORCH_NO_CUDA_MEMORY_CACHING=1"
                    " timeout 70 compute-sanitizer --tool memcheck --error-exitcode 9"
                    f" {_STREAMING} -k 'products and 1-1-1'",
                    f"{_PYTEST} -n 6 -m cuda tests/spectra tests/attention"
                    " --ignore tests/attention/test_ranking.py :: -n 0",
                    "{python} -m benchmarks.bench_scan --device cuda --only argmax,spectrum"
                    " --out {folder}/scan.json :: --device cpu --small --only argmax",
                ),
                150,
                first=True,
            ),
            _attack(
                "attack-pairs",
                "cpu=8,cuda=2",
                "--aim pairs --largest 30 --minutes 2 --seed 20000000",
                first=True,
            ),
            # 15 members took 1.8 times as long as --list says (tokens_per_second of prose, w128).
            _language("code-128", "code-next-token-w128-n128:width", 75),
            _language("code-512", "code-next-token-w128-n512:width", 90),
            _attack("attack-1", "cpu=8", "--minutes {minutes} --seed 3000000000"),
        ),
    ),
    2: Call(
        "language models on prose and code at other rates, lengths and widths",
        4.5,
        (CIFAR10[1], PROSE),
        (
            _language("prose-512", "prose-next-token-w128-n512:width", 90),
            _language("prose-rates", "prose-next-token-w256-n512:rates", 110),
            _language(
                "code-256", "code-next-token-w256-n128:width", 100, "--lengths 1000,2000", low=True
            ),
            _language(
                "prose-256",
                "prose-next-token-w256-n128:width",
                100,
                "--lengths 1000,2000",
                low=True,
            ),
            _attack("attack-2", "cpu=8", "--minutes {minutes} --seed 4000000000"),
        ),
        goes_on=True,
    ),
    3: Call(
        "CIFAR-10 at width 384, seed 1, and the advice at width 192",
        8.5,
        (CIFAR10[2],),
        (
            # Seed 0 took 326 s of steps beside another ensemble, and about a minute to compile.
            Job(
                "cifar10-384",
                (f"{_REAL} --runs cifar10-384 --seeds 1 --heads 1,2,4 :: {_TRIAL}",),
                385,
                "real_cifar10_384.jsonl",
                CIFAR10,
            ),
            _advised("cifar10", 360, CIFAR10),
            _attack("attack-3", "cpu=8", "--minutes {minutes} --seed 5000000000"),
        ),
    ),
    4: Call(
        "the other splits of SVHN, and what was not finished",
        4,
        ("local/advice-data/svhn.npz.xz",),
        (
            _split("svhn"),
            _attack("attack-4", "cpu=8", "--minutes {minutes} --seed 6000000000"),
        ),
        goes_on=True,
    ),
    5: Call(
        "the other splits of CIFAR-100, classes of texts, and what was not finished",
        4,
        ("local/advice-data/cifar100.npz.xz", *TEXTS),
        (
            _split("cifar100"),
            _texts(),
            _attack("attack-5", "cpu=8", "--minutes {minutes} --seed 7000000000"),
        ),
        goes_on=True,
    ),
    6: Call(
        "for a later session: longer trainings, masked tokens, ranks apart, recall",
        9,
        (WHEELS, CODE, PROSE),
        (
            _language("code-256-long", "code-next-token-w256-n128:width", 210, "--lengths 4000"),
            _language("prose-256-long", "prose-next-token-w256-n128:width", 210, "--lengths 4000"),
            _language("recall", "associative-w128-n256,associative-w128-n128:keys", 110, low=True),
            _language("masked", "prose-masked-token-w128-n512:width", 110, low=True),
            _attack("attack-6", "cpu=8", "--minutes {minutes} --seed 8000000000"),
        ),
    ),
    7: Call(
        "for a later session: the advice at width 192 on SVHN and CIFAR-100",
        6,
        (WHEELS, *(f"local/realdata/{name}-1" for name in OTHERS)),
        (
            *(_advised(name, 120, (f"local/realdata/{name}-1",), low=False) for name in OTHERS),
            _attack("attack-7", "cpu=8", "--minutes {minutes} --seed 9000000000"),
        ),
    ),
}

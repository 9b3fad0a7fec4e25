"""Golden files do not depend on the CPU: NumPy and BLAS choose their code by what it can do."""

import os
import platform
import subprocess
import sys

import numpy._core._multiarray_umath as numpy_core
import pytest

from tests.conftest import ROOT

GOLDEN_TESTS = (
    "tests/report/test_report.py::test_the_report_is_as_it_was",
    "tests/report/test_exports.py::test_a_text_is_as_it_was",
    "tests/report/compare/test_forms.py::test_a_form_is_as_it_was",
    "tests/report/history/test_history.py::test_a_form_is_as_it_was",
)
# OpenBLAS's oldest kernels for 64 bits.
OLDEST_BLAS = {"x86_64": "Prescott", "AMD64": "Prescott"}


def dispatched() -> list[str]:
    """The CPU features beyond the baseline that NumPy uses on this CPU."""
    return [name for name in numpy_core.__cpu_dispatch__ if numpy_core.__cpu_features__.get(name)]


@pytest.mark.slow("runs four files of tests again")
def test_golden_files_without_optional_cpu_features() -> None:
    """With all features, these tests run in this very suite."""
    environment: dict[str, str] = {}
    if features := dispatched():
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(features)
    if oldest := OLDEST_BLAS.get(platform.machine()):
        environment["OPENBLAS_CORETYPE"] = oldest
    if not environment:
        pytest.skip("NumPy and BLAS use no optional feature of this CPU")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *GOLDEN_TESTS],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

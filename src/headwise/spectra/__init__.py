"""Measure the singular values and the rank of matrices; this package knows nothing of attention."""

from headwise.spectra.certificate import Certificate, Counts, Estimate
from headwise.spectra.krylov import LeadingSpectrum, leading_spectrum
from headwise.spectra.measuring import Measurement, count, measure, spectrum
from headwise.spectra.operators import DenseOperator, FunctionalOperator, Operator
from headwise.spectra.ranks import (
    PAPER_TOLERANCE,
    Absolute,
    DtypeFloor,
    Relative,
    Spectrum,
    Tolerance,
    effective_rank,
    energy_rank,
    numerical_rank,
    stable_rank,
)
from headwise.spectra.sources import LogWeights
from headwise.spectra.stochastic import SpectralDensity, spectral_density

__all__ = [
    "PAPER_TOLERANCE",
    "Absolute",
    "Certificate",
    "Counts",
    "DenseOperator",
    "DtypeFloor",
    "Estimate",
    "FunctionalOperator",
    "LeadingSpectrum",
    "LogWeights",
    "Measurement",
    "Operator",
    "Relative",
    "SpectralDensity",
    "Spectrum",
    "Tolerance",
    "count",
    "effective_rank",
    "energy_rank",
    "leading_spectrum",
    "measure",
    "numerical_rank",
    "spectral_density",
    "spectrum",
    "stable_rank",
]

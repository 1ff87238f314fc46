"""Compute specs on this machine or on a Dask cluster."""

from headwise.runs.executors.cluster import ClusterExecutor
from headwise.runs.executors.local import LocalExecutor
from headwise.runs.executors.protocol import Executor

__all__ = ["ClusterExecutor", "Executor", "LocalExecutor"]

"""The folder that all jobs of a sweep must share."""

from snakemake_interface_executor_plugins.settings import (
    SharedFSUsage,
    StorageSettingsExecutorInterface,
)

from qdsweep.errors import BadInput

_WHY = (
    "all jobs must share the folder with the reload files, state/ and locks of the runs. No "
    "storage provider can replace it. Leave the option out. Use one machine (snakemake --cores N) "
    "or Slurm with a folder that all nodes share (snakemake --profile profiles/slurm). Elsewhere, "
    "run the whole sweep in one job (snakemake --cores all), and keep its results/"
)


def check_shared_files(storage: StorageSettingsExecutorInterface) -> None:
    """Refuses to keep results anywhere but in a folder that all jobs share.

    Raises:
        BadInput: Snakemake was given a storage provider for them, or an option that denies such a
            folder.
    """
    provider = storage.default_storage_provider
    if provider is not None:
        raise BadInput(f"--default-storage-provider {provider}: {_WHY}")
    if SharedFSUsage.INPUT_OUTPUT not in storage.shared_fs_usage:
        usage = " ".join(sorted(kind.item_to_choice() for kind in storage.shared_fs_usage))
        raise BadInput(f"--shared-fs-usage {usage or 'none'} lacks input-output: {_WHY}")

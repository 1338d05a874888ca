# For Spack 1.0 and later. Where Spack doesn't have it yet, a repository of one's own takes this file, as
# packages/mpit_exporter/package.py.
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class MpitExporter(MakefilePackage):
    """Live metrics of running MPI jobs for Prometheus and OpenTelemetry, per rank and per
    communicator, from MPI_T and from a profile of MPI calls, without recompiling the program."""

    homepage = "https://github.com/mpit-exporter/mpit-exporter"
    git = "https://github.com/mpit-exporter/mpit-exporter.git"

    license("Apache-2.0")

    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    # No MPI: the libraries load into programs of every one. Go fetches its modules.
    depends_on("c", type="build")
    depends_on("gmake", type="build")
    depends_on("go@1.26:", type="build")

    build_targets = ["build"]

    @property
    def install_targets(self):
        return ["install", f"PREFIX={self.prefix}"]

# docker build --target exporter -t mpit-exporter .    the exporter, and the libraries for images of MPI programs to copy
#
# The target demo, small MPI jobs with a call profile, is docker-compose.yml's.
FROM golang:1.26-bookworm AS build
# For the demo's programs alone.
RUN apt-get update && apt-get install -y --no-install-recommends libopenmpi-dev openmpi-bin && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build && mpicc.openmpi -O2 -o bin/halo examples/demo/halo.c && mpicc.openmpi -g -O2 -o bin/stencil examples/calls/stencil.c

FROM debian:bookworm-slim AS exporter
COPY --from=build /src/bin/mpit-exporter /usr/bin/mpit-exporter
COPY --from=build /src/bin/libmpit-agent.so /src/bin/libmpit-calls.so /usr/lib/mpit-exporter/
COPY --from=build /src/LICENSE /usr/share/doc/mpit-exporter/copyright
# A number, so that Kubernetes can see that it is not root's. A volume for the sockets gets the directory's owner.
RUN install -d -o 65532 -g 65532 /run/mpit-exporter
USER 65532:65532
EXPOSE 10093
VOLUME /run/mpit-exporter
HEALTHCHECK --interval=5s --timeout=3s --start-period=2s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/10093 && printf 'GET /-/healthy HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["/usr/bin/mpit-exporter"]

FROM exporter AS demo
USER root
RUN apt-get update && apt-get install -y --no-install-recommends openmpi-bin && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/bin/halo /src/bin/stencil /usr/local/bin/
COPY examples/compose/job.sh /usr/local/bin/job.sh
RUN chmod 755 /usr/local/bin/job.sh
USER 65533:65533
# A job's directories are Open MPI's own business, and its user has no home.
ENV HOME=/tmp
HEALTHCHECK --interval=5s --timeout=3s --start-period=5s CMD ["bash", "-c", "grep -qxE 'halo|stencil' /proc/[0-9]*/comm 2>/dev/null"]
ENTRYPOINT ["/usr/local/bin/job.sh"]

# The runtime service. From the root of the repository:
#
#   make build && docker build -t taskmill-runtime -f deploy/runtime.Dockerfile .
#
# It listens on all interfaces of its container: set SERVICE_TOKEN, or publish its port on loopback only.
# Another subcommand goes after the image name: `docker run --rm taskmill-runtime doctor`.

# Any glibc distribution with useradd. It must contain the programs that tasks run.
ARG BASE=debian:12-slim
FROM ${BASE}

RUN groupadd --system --gid 10001 taskmill \
 && useradd --system --uid 10001 --gid taskmill --home-dir /var/lib/taskmill --shell /usr/sbin/nologin taskmill \
 && install -d -o taskmill -g taskmill -m 0700 /var/lib/taskmill
COPY dist/taskmill-runtime /usr/local/bin/

# The data directory is ./data, in the volume.
USER taskmill
WORKDIR /var/lib/taskmill
ENV SERVICE_RUNTIME_LISTEN_ADDR=:18080
VOLUME ["/var/lib/taskmill"]
EXPOSE 18080
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["taskmill-runtime", "health"]
ENTRYPOINT ["taskmill-runtime"]
CMD ["serve"]

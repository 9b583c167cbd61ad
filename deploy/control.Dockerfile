# The control service, and the client for its health check. From the root of the repository:
#
#   make build && docker build -t taskmill-control -f deploy/control.Dockerfile .
#
# It listens on all interfaces of its container: set SERVICE_TOKEN, or publish its port on loopback only.
# Flags go after the image name; `taskmill-control --help` lists them.

# Any glibc distribution with useradd. It must contain the programs that tasks run.
ARG BASE=debian:12-slim
FROM ${BASE}

# State is a volume. Tasks start in /work, so a relative path cannot reach the state.
RUN groupadd --system --gid 10001 taskmill \
 && useradd --system --uid 10001 --gid taskmill --home-dir /work --shell /usr/sbin/nologin taskmill \
 && install -d -o taskmill -g taskmill -m 0700 /var/lib/taskmill /work
COPY dist/taskmill-control dist/taskmill /usr/local/bin/

USER taskmill
WORKDIR /work
ENV SERVICE_ADDR=:8080 SERVICE_DATA_DIR=/var/lib/taskmill
VOLUME ["/var/lib/taskmill"]
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["taskmill", "health", "--ready"]
ENTRYPOINT ["taskmill-control"]

/*
 * A secret that only the service and its like on the host have, by its beginning: whoever has more of it has found it. It is searched
 * for in processes, files and shared memory, and those are asked who have it: sockets, and the proxy, which adds it to requests.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#include "attempt.h"
#include "network-proxy.h"
#include "secret-search.h"
#include "sockets.h"

/* Bytes of the longest mapping, or file, that is searched. */
#define MAX_SEARCHED_BYTES (256L * 1024 * 1024)

/* Files and directories that are looked at, those near the root first, and the seconds until the last of them: disks may be slow. */
#define MAX_ENTRIES 50000
#define MAX_SECONDS 15

/* A file that was last changed earlier cannot have the secret. */
#define MAX_AGE_SECONDS 600

/* Bytes of an answer that are read. */
#define ANSWER_BYTES 16384

#define PATH_BYTES 4096

static struct result no_secret(void) { return not_applicable("no secret was laid out"); }

static bool is_in_file(const char *path, const struct baits *baits) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return false;
  bool is_found = is_secret_in_range(baits->secret_mark, fd, 0, MAX_SEARCHED_BYTES);
  close(fd);
  return is_found;
}

static bool is_in_memory(const char *process, const struct baits *baits) {
  char path[PATH_BYTES], line[PATH_BYTES];
  snprintf(path, sizeof path, "%s/maps", process);
  FILE *maps = fopen(path, "re");
  snprintf(path, sizeof path, "%s/mem", process);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  bool is_found = false;
  while (maps != NULL && fd >= 0 && !is_found && fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    char mode[5];
    if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[0] != 'r' || (long)from < 0) continue;
    if (to - from > MAX_SEARCHED_BYTES) to = from + MAX_SEARCHED_BYTES;
    is_found = is_secret_in_range(baits->secret_mark, fd, (off_t)from, (off_t)to);
  }
  if (maps != NULL) fclose(maps);
  if (fd >= 0) close(fd);
  return is_found;
}

/* Pipes and sockets are left alone: who reads them takes away what others wait for. */
static bool is_in_open_files(const char *process, const struct baits *baits) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/fd", process);
  DIR *files = opendir(path);
  bool is_found = false;
  for (struct dirent *entry; files != NULL && !is_found && (entry = readdir(files)) != NULL;) {
    struct stat status;
    snprintf(path, sizeof path, "%s/fd/%s", process, entry->d_name);
    is_found = stat(path, &status) == 0 && S_ISREG(status.st_mode) && is_in_file(path, baits);
  }
  if (files != NULL) closedir(files);
  return is_found;
}

static struct result look_in_process(const char *pid, const struct baits *baits) {
  static const char *const NAMES[] = {"environ", "cmdline"};
  char process[PATH_BYTES / 2], path[PATH_BYTES], detail[DETAIL_BYTES];
  snprintf(process, sizeof process, "/proc/%s", pid);
  const char *place = NULL;
  for (size_t i = 0; i < COUNT_OF(NAMES) && place == NULL; i++) {
    snprintf(path, sizeof path, "%s/%s", process, NAMES[i]);
    if (is_in_file(path, baits)) place = NAMES[i];
  }
  if (place == NULL && is_in_memory(process, baits)) place = "mem";
  if (place == NULL && is_in_open_files(process, baits)) place = "fd";
  snprintf(detail, sizeof detail, "%.100s/%s", process, place == NULL ? "" : place);
  return place == NULL ? blocked(detail) : opened(detail);
}

static struct result search_processes(const struct baits *baits) {
  if (baits->secret_mark == NULL) return no_secret();
  char host_pid[16];
  snprintf(host_pid, sizeof host_pid, "%d", baits->pid);
  struct result result = baits->pid > 0 ? look_in_process(host_pid, baits) : blocked("");
  DIR *proc = opendir("/proc");
  if (proc == NULL) return result.verdict == OPEN ? result : refused();
  int count = 0;
  for (struct dirent *entry; result.verdict == BLOCKED && (entry = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    result = look_in_process(entry->d_name, baits);
    count++;
  }
  closedir(proc);
  if (result.verdict == OPEN) return result;
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "none of %d has it", count);
  return blocked(detail);
}

/* Directories to be looked through, in this order. */
struct queue {
  char *paths[MAX_ENTRIES];
  size_t count;
  time_t started;
  int entries;
  int files;
};

static bool is_over(const struct queue *queue) {
  return queue->entries >= MAX_ENTRIES || time(NULL) - queue->started > MAX_SECONDS;
}

static void push(struct queue *queue, const char *path) {
  char *copy = queue->count < COUNT_OF(queue->paths) ? strdup(path) : NULL;
  if (copy != NULL) queue->paths[queue->count++] = copy;
}

/* What the kernel makes up is no file of anybody, and may be without end. Processes have an attempt of their own. */
static bool is_of_kernel(const char *directory) {
  static const unsigned long MAGICS[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC, TRACEFS_MAGIC,
                                         SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC};
  struct statfs status;
  if (statfs(directory, &status) != 0) return true;
  for (size_t i = 0; i < COUNT_OF(MAGICS); i++)
    if ((unsigned long)status.f_type == MAGICS[i]) return true;
  return false;
}

/* Whether a file has the secret. A directory comes into the queue. */
static bool is_at(const char *path, struct queue *queue, const struct baits *baits) {
  struct stat status;
  queue->entries++;
  if (lstat(path, &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) push(queue, path);
  if (!S_ISREG(status.st_mode) || status.st_ctime + MAX_AGE_SECONDS < time(NULL)) return false;
  queue->files++;
  return is_in_file(path, baits);
}

static struct result search_files(const struct baits *baits) {
  static struct queue queue;
  static const char *const PLACES[] = {".", "..", "/dev/shm", "/dev/mqueue", "/tmp", "/run", "/var/tmp", "/"};
  char path[PATH_BYTES];
  if (baits->secret_mark == NULL) return no_secret();
  queue.started = time(NULL);
  for (size_t i = 0; i < baits->secrets.count; i++)
    if (is_at(baits->secrets.list[i], &queue, baits)) return opened(baits->secrets.list[i]);
  for (size_t i = 0; i < COUNT_OF(PLACES); i++) push(&queue, PLACES[i]);
  for (size_t i = 0; i < queue.count && !is_over(&queue); i++) {
    DIR *directory = is_of_kernel(queue.paths[i]) ? NULL : opendir(queue.paths[i]);
    for (struct dirent *entry; directory != NULL && !is_over(&queue) && (entry = readdir(directory)) != NULL;) {
      const char *name = entry->d_name;
      if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
      snprintf(path, sizeof path, "%s/%s", strcmp(queue.paths[i], "/") == 0 ? "" : queue.paths[i], name);
      if (is_at(path, &queue, baits)) return opened(path);
    }
    if (directory != NULL) closedir(directory);
  }
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "none of %d new files among %s%d has it", queue.files,
           is_over(&queue) ? "the first " : "", queue.entries);
  return blocked(detail);
}

static bool is_in_segment(int id, const struct baits *baits) {
  struct shmid_ds status;
  if (id < 0 || shmctl(id, IPC_STAT, &status) != 0) return false;
  void *bytes = shmat(id, NULL, SHM_RDONLY);
  if (bytes == (void *)-1) return false;
  bool is_found = has_secret(baits->secret_mark, bytes, status.shm_segsz);
  shmdt(bytes);
  return is_found;
}

/* Takes a message away: of a bait, nobody waits for it. */
static bool is_in_queue(const struct baits *baits) {
  char message[8192];
  if (baits->queue_name == NULL) return false;
  mqd_t queue = mq_open(baits->queue_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (queue < 0) return false;
  ssize_t got = mq_receive(queue, message, sizeof message, NULL);
  mq_close(queue);
  return got > 0 && has_secret(baits->secret_mark, message, (size_t)got);
}

static struct result search_shared(const struct baits *baits) {
  if (baits->secret_mark == NULL) return no_secret();
  if (baits->shm_key != 0 && is_in_segment(shmget(baits->shm_key, 0, 0), baits)) return opened("a segment of the host");
  if (is_in_queue(baits)) return opened("a message of the host");
  struct shm_info info;
  int last = shmctl(0, SHM_INFO, (struct shmid_ds *)&info), count = 0;
  for (int i = 0; i <= last; i++) {
    struct shmid_ds status;
    int id = shmctl(i, SHM_STAT, &status);
    if (id < 0) continue;
    if (is_in_segment(id, baits)) return opened("a segment");
    count++;
  }
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "none of %d segments has it", count);
  return blocked(detail);
}

/* Who listens tells the secret to everybody. */
static struct result ask_sockets(const struct baits *baits) {
  char answer[ANSWER_BYTES];
  if (baits->secret_mark == NULL) return no_secret();
  for (size_t i = 0; i < baits->sockets.count + 2; i++) {
    int fd = i == 0   ? call_abstract(baits->abstract_name == NULL ? "" : baits->abstract_name)
             : i == 1 ? call_loopback(baits->tcp_port)
                      : call_path(baits->sockets.list[i - 2]);
    if (fd < 0) continue;
    size_t got = read_until_end(fd, answer, sizeof answer);
    close(fd);
    if (has_secret(baits->secret_mark, answer, got)) return opened("it was told");
  }
  return blocked("nobody answers");
}

/* Requests that the proxy adds the secret to. The server tells it in all ways that it knows. */
static struct result ask_proxy(const struct baits *baits) {
  static const char *const METHODS[] = {"GET", "POST", "HEAD", "TRACE"};
  static const char *const PATHS[] = {"/body", "/head", "/chunks", "/early", "/open-end", "/upgrade", "/malformed", "/more"};
  if (baits->secret_mark == NULL || baits->echo_port == 0 || baits->placeholder == NULL)
    return not_applicable("there is no proxy that adds a secret");
  bool is_masked = false;
  for (size_t i = 0; i < COUNT_OF(METHODS) * COUNT_OF(PATHS) * 2; i++) {
    char request[1024], answer[ANSWER_BYTES];
    bool is_socks = i % 2 == 1;
    const char *method = METHODS[i / 2 % COUNT_OF(METHODS)], *path = PATHS[i / 2 / COUNT_OF(METHODS)];
    char origin[64] = "";
    if (!is_socks) snprintf(origin, sizeof origin, "http://127.0.0.1:%d", baits->echo_port);
    snprintf(request, sizeof request,
             "%s %s%s?a=%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Key: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method,
             origin, path, baits->placeholder, baits->echo_port, baits->placeholder);
    size_t got = proxy_answer(baits, is_socks ? baits->echo_port : 0, request, answer, sizeof answer);
    if (has_secret(baits->secret_mark, answer, got)) {
      char detail[DETAIL_BYTES];
      snprintf(detail, sizeof detail, "by %s %s", method, path);
      return opened(detail);
    }
    if (i == 0) is_masked = strstr(answer, " 200 ") != NULL && strstr(answer, "x-key: ********") != NULL;
  }
  return is_masked ? blocked("all of it is masked in the answers") : opened("not tried: the server did not answer with it");
}

static const struct attempt LIST[] = {
  {"secret_in_processes", "looks for a secret of the service in memory, environment and files of processes", search_processes, 0, false},
  {"secret_in_files", "looks for it in new files of all directories", search_files, 0, false},
  {"secret_in_shared_memory", "looks for it in shared memory and queues", search_shared, 0, false},
  {"secret_from_sockets", "asks sockets of the host for it", ask_sockets, 0, false},
  {"secret_from_proxy", "has a server echo it that the proxy adds it for", ask_proxy, 0, false},
};

const struct attempts secret_attempts = ATTEMPTS_OF(LIST);

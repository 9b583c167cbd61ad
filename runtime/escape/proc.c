/* What /proc and /sys would let it read or set: of the machine, of PID 1, of others. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attempt.h"

#define OPENS(name, flags, ...)                                                                                        \
  static struct result name(const struct baits *baits) {                                                               \
    (void)baits;                                                                                                       \
    static const char *const PATHS[] = {__VA_ARGS__};                                                                  \
    return any_opens(PATHS, COUNT_OF(PATHS), flags);                                                                   \
  }

/* Programs that the kernel would start as root of the host. */
OPENS(set_core_pattern, O_WRONLY, "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe",
      "/proc/sys/kernel/hotplug", "/proc/sys/kernel/poweroff_cmd", "/sys/kernel/uevent_helper",
      "/proc/sys/fs/binfmt_misc/register")
OPENS(set_kernel, O_WRONLY, "/proc/sys/kernel/sysrq", "/proc/sys/kernel/randomize_va_space",
      "/proc/sys/kernel/hostname", "/proc/sys/kernel/yama/ptrace_scope", "/proc/sys/fs/suid_dumpable")
OPENS(set_memory, O_WRONLY, "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/drop_caches", "/proc/sys/vm/swappiness")
OPENS(set_namespaces, O_WRONLY, "/proc/sys/user/max_user_namespaces", "/proc/sys/user/max_mnt_namespaces")
OPENS(set_network, O_WRONLY, "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_unprivileged_port_start")
OPENS(press_sysrq, O_WRONLY, "/proc/sysrq-trigger")
OPENS(read_memory, O_RDONLY, "/proc/kcore", "/proc/kmsg", "/proc/vmcore")
OPENS(set_machine, O_WRONLY, "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled",
      "/sys/module/kernel/parameters/panic", "/sys/fs/bpf", "/sys/kernel/debug/sched/debug",
      "/sys/kernel/tracing/tracing_on", "/sys/devices/system/cpu/cpu1/online", "/sys/block/vda/queue/scheduler")

/* Opens a file of /proc/PID. Of a host's own PID 1 nothing is opened. */
static struct result open_of(pid_t pid, const char *const *names, size_t count, int flags) {
  char paths[8][48];
  const char *list[8];
  for (size_t i = 0; i < count; i++) {
    snprintf(paths[i], sizeof paths[i], "/proc/%d/%s", pid, names[i]);
    list[i] = paths[i];
  }
  return any_opens(list, count, flags);
}

static struct result open_of_init(const char *const *names, size_t count, int flags) {
  if (!has_own_init()) return not_applicable("PID 1 is the host's own: the bait stands for it");
  return open_of(1, names, count, flags);
}

static struct result enter_init(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"root", "cwd", "fd", "map_files"};
  return open_of_init(NAMES, COUNT_OF(NAMES), O_RDONLY | O_DIRECTORY);
}

static struct result read_init(const struct baits *baits) {
  (void)baits;
  static const char *const NAMES[] = {"environ", "mem", "auxv", "stack", "syscall"};
  return open_of_init(NAMES, COUNT_OF(NAMES), O_RDONLY);
}

/* It was started with paths of the host. */
static struct result read_command(const struct baits *baits) {
  (void)baits;
  char line[4096];
  if (!has_own_init()) return not_applicable("PID 1 is the host's own: the bait stands for it");
  int fd = open("/proc/1/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused();
  ssize_t got = read(fd, line, sizeof line);
  close(fd);
  return got > 0 && memchr(line, '/', (size_t)got) != NULL ? opened("it has paths") : blocked("it has none");
}

static struct result read_bait(const struct baits *baits) {
  static const char *const NAMES[] = {"environ", "mem", "root", "cwd", "fd", "maps"};
  if (baits->pid <= 0) return not_applicable("no process was laid out");
  return open_of(baits->pid, NAMES, COUNT_OF(NAMES), O_RDONLY);
}

/* Who started us, or is over us, may be the launcher: its program is run again for the next task. */
static struct result overwrite_launcher(const struct baits *baits) {
  const pid_t pids[] = {has_own_init() ? 1 : 0, baits->starter_pid};
  struct result result = blocked("no program to be found");
  for (size_t i = 0; i < COUNT_OF(pids) && result.verdict == BLOCKED; i++) {
    char path[48], again[48], target[256] = "";
    snprintf(path, sizeof path, "/proc/%d/exe", pids[i]);
    int fd = pids[i] > 0 ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd < 0) continue;
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    if (readlink(again, target, sizeof target - 1) < 0 || strstr(target, "taskmill-escape") != NULL) continue;
    int writable = open(again, O_WRONLY | O_CLOEXEC);
    result = judged(writable < 0 && errno == ETXTBSY ? 0 : writable); /* busy now, writable when it has ended */
    if (writable >= 0) close(writable);
  }
  return result;
}

/* A process that is not of our session, and not over us, is none of ours. */
static struct result see_others(const struct baits *baits) {
  DIR *proc = opendir("/proc");
  if (proc == NULL) return refused();
  int others = 0;
  for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    pid_t pid = atoi(entry->d_name);
    if (pid > 1 && pid != baits->starter_pid && getsid(pid) != getsid(0)) others++;
  }
  closedir(proc);
  char detail[DETAIL_BYTES];
  snprintf(detail, sizeof detail, "%d are to be seen", others);
  return others > 0 ? opened(detail) : blocked(detail);
}

static const struct attempt LIST[] = {
  {"set_core_pattern", "sets which program the kernel starts as root", set_core_pattern, 0, false},
  {"set_kernel", "opens settings of the kernel for writing", set_kernel, 0, false},
  {"set_memory", "opens settings of its memory for writing", set_memory, 0, false},
  {"set_namespaces", "raises the number of namespaces that it may make", set_namespaces, 0, false},
  {"set_network", "opens settings of the network for writing", set_network, 0, false},
  {"set_machine", "opens settings in /sys for writing", set_machine, 0, false},
  {"sysrq", "opens the file that restarts the machine", press_sysrq, 0, false},
  {"kernel_memory", "opens the memory or the log of the kernel", read_memory, 0, false},
  {"init_directories", "enters the root, directory or files of PID 1", enter_init, 0, false},
  {"init_secrets", "opens the environment or the memory of PID 1", read_init, 0, false},
  {"init_command", "reads the command line of PID 1", read_command, 0, false},
  {"host_process_files", "opens files of a process of the host", read_bait, 0, false},
  {"launcher_program", "opens the program of the launcher for writing", overwrite_launcher, 0, false},
  {"host_processes", "looks for processes that are not its own", see_others, 0, false},
};

const struct attempts proc_attempts = ATTEMPTS_OF(LIST);

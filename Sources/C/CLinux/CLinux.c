/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of CLinux.h. */

#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

int linux_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

int linux_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) < 0) return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    return 0;
}

int linux_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int linux_timerfd_fire(int timer, int64_t nanoseconds) {
    struct itimerspec setting = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000},
    };
    return timerfd_settime(timer, 0, &setting, NULL);
}

void linux_dump_no_core(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

int linux_clock_timer(void) { return timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK); }

int linux_clock_timer_arm(int timer) {
    // The far future: nanoseconds since 1970 overflow 64 bits in the year 2262.
    struct itimerspec setting = {.it_value = {.tv_sec = INT64_MAX / 1000000000}};
    return timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, NULL);
}

int linux_route_socket(bool listens) {
    int type = SOCK_RAW | SOCK_CLOEXEC | (listens ? SOCK_NONBLOCK : 0);
    int result = socket(AF_NETLINK, type, NETLINK_ROUTE);
    if (result < 0) return -1;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK};
    if (listens)
        address.nl_groups =
            RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
    if (bind(result, (struct sockaddr *)&address, sizeof address) < 0) {
        int code = errno;
        close(result);
        errno = code;
        return -1;
    }
    return result;
}

int linux_route_ask(int socket, uint16_t request) {
    struct {
        struct nlmsghdr header;
        struct rtmsg body; // at least as long as the body of any other request; the extra bytes may be zero
        uint32_t rest;
    } message = {
        .header = {.nlmsg_len = sizeof message, .nlmsg_type = request, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
    };
    return send(socket, &message, sizeof message, 0) == sizeof message ? 0 : -1;
}

int linux_signalfd(const sigset_t *signals) { return signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK); }

void linux_name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

int linux_lock_until(pthread_mutex_t *mutex, const struct timespec *deadline) {
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, deadline);
}

const char *linux_program(void) { return (const char *)getauxval(AT_EXECFN); }

/* Its address is the number. */
extern const char notifybus_commit __attribute__((weak));

uint64_t linux_commit(void) { return (uintptr_t)&notifybus_commit; }

const char *linux_secure_getenv(const char *name) { return secure_getenv(name); }

int linux_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }

int linux_epoll_add(int epoll, int descriptor, uint32_t events, uint64_t number) {
    struct epoll_event event = {.events = events, .data.u64 = number};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

int linux_epoll_change(int epoll, int descriptor, uint32_t events, uint64_t number) {
    struct epoll_event event = {.events = events, .data.u64 = number};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, descriptor, &event);
}

int linux_epoll_remove(int epoll, int descriptor) { return epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, NULL); }

int linux_epoll_wait(int epoll, linux_event *events, int count, int timeout) {
    struct epoll_event found[64];
    int number = epoll_wait(epoll, found, count < 64 ? count : 64, timeout);
    for (int i = 0; i < number; i++) events[i] = (linux_event){.events = found[i].events, .number = found[i].data.u64};
    return number;
}

/* By number: glibc has wrappers for these two only since 2.36. */
int linux_pidfd_open(pid_t process) { return (int)syscall(SYS_pidfd_open, process, 0); }

int linux_pidfd_signal(int pidfd, int signal) { return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0); }

long linux_getxattr(const char *path, const char *name, void *value, size_t size) {
    return getxattr(path, name, value, size);
}

int linux_connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) return -1;
    if (connect(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        int code = errno;
        close(descriptor);
        errno = code;
        return -1;
    }
    return descriptor;
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(LINUX_MAX_DESCRIPTORS * sizeof(int))];
};

long linux_receive(int socket, void *buffer, size_t size, int *descriptors, int *count) {
    union control control;
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    *count = 0;
    if (descriptors != NULL) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (received < 0 || descriptors == NULL) return received;
    for (struct cmsghdr *part_of = CMSG_FIRSTHDR(&message); part_of; part_of = CMSG_NXTHDR(&message, part_of)) {
        if (part_of->cmsg_level != SOL_SOCKET || part_of->cmsg_type != SCM_RIGHTS) continue;
        int found = (int)((part_of->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors + *count, CMSG_DATA(part_of), (size_t)found * sizeof(int));
        *count += found;
    }
    return received;
}

long linux_send(int socket, const void *bytes, size_t size, const int *descriptors, int count) {
    int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    if (count == 0) return send(socket, bytes, size, flags);
    union control control;
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > LINUX_MAX_DESCRIPTORS) {
        errno = EINVAL;
        return -1;
    }
    memset(&control, 0, sizeof control);
    message.msg_control = &control;
    message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(&control.header), descriptors, (size_t)count * sizeof(int));
    return sendmsg(socket, &message, flags);
}

int linux_memfd(const char *name) { return memfd_create(name, MFD_CLOEXEC); }

void linux_give_memory_back(void) { malloc_trim(0); }

void linux_keep_little_memory(void) { mallopt(M_TRIM_THRESHOLD, 128 * 1024); }

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls every function in the child of a fork, whose parent has registered the name that is the argument. Prints which
 * calls reach a part of Swift's runtime that creates objects under a lock. Another thread of the parent may have held it
 * at the fork, and the child would wait forever. The same for the first call of the program, until it has forks wait.
 *
 * Those parts are found in the library's symbol table. The program overwrites their first instruction with an invalid
 * one and restores it once it was reached.
 */
#define _GNU_SOURCE
#define NOTIFYBUS_EXTENSIONS
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <notify.h>
#include <notify_private.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
static const unsigned char invalid[] = {0x0f, 0x0b};
#else
/* On AArch64. */
static const unsigned char invalid[] = {0, 0, 0, 0};
#endif

struct part {
    const char *name;
    unsigned char *code, saved[sizeof invalid];
};

static struct part parts[4096];
static int part_count;
static const char *function = "";
/* What has forks wait. */
static struct part delay;

/* Whether a function creates what the first use needs: type metadata, a conformance, or the value of a global. */
static int creates(const char *name) {
    static const char *const starts[] = {
        "swift_getTypeByMangledName",
        "swift_getExistentialTypeMetadata",
        "swift_getSingletonMetadata",
        "swift_allocateGeneric",
        "swift_conformsToProtocol",
        "swift_initClassMetadata",
        "swift_initStructMetadata",
        "swift_initEnumMetadata",
        "swift_initRawStructMetadata",
        "swift_getAssociatedTypeWitnessSlow",
        "swift_getAssociatedConformanceWitnessSlow",
    };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) return 1;
    return name[0] == '$' && length > 2 && strcmp(name + length - 2, "WZ") == 0;
}

static int find_parts(void) {
    Dl_info library;
    struct stat facts;
    if (!dladdr((void *)notify_post, &library)) return 0;
    int file = open(library.dli_fname, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &facts) != 0) return 0;
    char *image = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    if (image == MAP_FAILED) return 0;
    const ElfW(Ehdr) *header = (const void *)image;
    const ElfW(Shdr) *sections = (const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const ElfW(Sym) *symbols = (const void *)(image + sections[i].sh_offset);
        const char *names = image + sections[sections[i].sh_link].sh_offset;
        for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++) {
            const char *name = names + symbols[j].st_name;
            if (ELF64_ST_TYPE(symbols[j].st_info) != STT_FUNC || symbols[j].st_shndx == SHN_UNDEF) continue;
            unsigned char *code = (unsigned char *)library.dli_fbase + symbols[j].st_value;
            if (strcmp(name, "fork_delay") == 0) delay = (struct part){.name = name, .code = code};
            if (!creates(name) || part_count == sizeof parts / sizeof *parts) continue;
            parts[part_count++] = (struct part){.name = name, .code = code};
        }
    }
    return part_count;
}

static void write_code(unsigned char *code, const unsigned char *bytes) {
    uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)code & ~(size - 1);
    if (mprotect((void *)page, 2 * size, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) _exit(40);
    memcpy(code, bytes, sizeof invalid);
    __builtin___clear_cache((char *)code, (char *)code + sizeof invalid);
}

static void trap(struct part *part) {
    memcpy(part->saved, part->code, sizeof invalid);
    write_code(part->code, invalid);
}

static void trap_all(void) {
    for (int i = 0; i < part_count; i++) memcpy(parts[i].saved, parts[i].code, sizeof invalid);
    for (int i = 0; i < part_count; i++) write_code(parts[i].code, invalid);
}

static void reached(int number, siginfo_t *info, void *context) {
    (void)number, (void)context;
    if (info->si_addr == delay.code) {
        write_code(delay.code, delay.saved);
        for (int i = 0; i < part_count; i++) write_code(parts[i].code, parts[i].saved);
        dprintf(1, "forks wait\n");
        return;
    }
    for (int i = 0; i < part_count; i++) {
        if (parts[i].code != info->si_addr) continue;
        dprintf(1, "%s: %s\n", function, parts[i].name);
        /* Two symbols may name the same code. */
        for (int j = 0; j < part_count; j++)
            if (parts[j].code == info->si_addr) write_code(parts[j].code, parts[j].saved);
        return;
    }
    _exit(41);
}

#define CALL(call) (function = #call, call)

static void called(int token, void *context) { (void)token, (void)context; }

static void make_calls(int parents) {
    int token, other, value, fd = -1;
    unsigned int count;
    uint64_t state;
    static char bytes[65536];
    /* Twice: what a child may not do, and what it may. */
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "com.example.a" : "self.example";
        token = parents;
        CALL(notify_is_valid_token(token));
        CALL(notify_check(token, &value));
        CALL(notify_peek(token, &count));
        CALL(notify_suspend(token));
        CALL(notify_resume(token));
        CALL(notify_get_state(token, &state));
        CALL(notify_set_state(token, 1));
        CALL(notify_monitor_file(token, "/", 0));
        CALL(notify_get_event(token, &value, NULL, NULL));
        CALL(notify_cancel(token));
        CALL(notify_post(name));
        CALL(notify_simple_post(name));
        CALL(notify_post("not a name \xff"));
        CALL(notify_suspend_pid(1));
        CALL(notify_resume_pid(1));
        CALL(notify_dump_status("/dev/null"));
        CALL(_notify_fork_child());
        CALL(notify_register_plain(name, &token));
        CALL(notify_register_signal(name, SIGURG, &token));
        CALL(notify_register_callback(name, &other, called, NULL));
        CALL(notify_register_file_descriptor(name, &fd, 0, &token));
        CALL(notify_register_file_descriptor(name, &fd, NOTIFY_REUSE, &other));
        CALL(notify_post(name));
        CALL(notify_suspend(token));
        CALL(notify_post(name));
        CALL(notify_resume(token));
        /* More than the pipe holds, and then what there was no room for. */
        for (int j = 0; j < 40000; j++) CALL(notify_post(name));
        if (i == 1 && read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes) CALL(read(fd, bytes, sizeof bytes));
        for (int j = 0; j < 40000; j++) CALL(notify_post(name));
        CALL(notify_cancel(other));
        CALL(notify_cancel(token));
        CALL(notify_register_check(name, &token));
        CALL(notify_post(name));
        CALL(notify_check(token, &value));
        CALL(notify_peek(token, &count));
        CALL(notify_set_state(token, 1));
        CALL(notify_get_state(token, &state));
        CALL(notify_monitor_file(token, "/", 0));
        CALL(notify_suspend(token));
        CALL(notify_resume(token));
        CALL(notify_cancel(token));
        CALL(notify_set_options(NOTIFY_OPT_DISABLE));
        CALL(notify_set_options(NOTIFY_OPT_ENABLE));
    }
}

int main(int argc, char **argv) {
    int fd, token, status;
    struct sigaction action = {.sa_sigaction = reached, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (argc != 2) return 1;
    if (find_parts() < 10 || !delay.code) return fputs("The library has no symbol table.\n", stderr), 1;
    sigaction(SIGILL, &action, NULL);
    trap_all();
    trap(&delay);
    CALL(notify_is_valid_token(1));
    CALL(notify_check(1, &token));
    CALL(notify_cancel(1));
    if (notify_register_file_descriptor(argv[1], &fd, 0, &token) != NOTIFY_STATUS_OK) return 2;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        trap_all();
        make_calls(token);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    printf("child ended with %d\n", status);
    return 0;
}

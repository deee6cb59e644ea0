/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a static command begins: gets all pages that relocating the program is about to write to, in two system calls.
 *
 * Each of the 70 pages would otherwise be copied in a page fault of its own, which takes 5 % of the time that notify-post
 * takes from start to end. Position-independent code costs that much more; see Benchmarks/README.md. Linux has
 * MADV_POPULATE_WRITE since 5.14, and older kernels refuse it, which does no harm. See madvise(2).
 *
 * The data that is not written again begins with .init_array and ends with .dynamic. packaging/compact.ld marks the rest.
 */
#if defined(NOTIFYBUS_IS_STATIC) && defined(__x86_64__)

#define MADVISE 28
#define MADV_POPULATE_WRITE 23

.macro populate from, to
    lea \from(%rip), %rdi
    and $-4096, %rdi
    lea \to(%rip), %rsi
    sub %rdi, %rsi
    mov $MADV_POPULATE_WRITE, %edx
    mov $MADVISE, %eax
    syscall
.endm

    .text
    .globl notifybus_start
    .type notifybus_start, @function
notifybus_start:
    /* What _start expects: the stack as it is, and no function to be called at exit. */
    populate __init_array_start, _DYNAMIC
    populate notifybus_data, notifybus_data_end
    xor %edx, %edx
    jmp _start
    .size notifybus_start, . - notifybus_start

#endif
    .section .note.GNU-stack, "", @progbits

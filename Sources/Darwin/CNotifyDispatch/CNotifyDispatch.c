/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CNotifyDispatch.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "notify.h"

typedef void unary_fn(void *object);
typedef void *copy_fn(const void *block);
typedef void async_fn(void *queue, void *context, void (*work)(void *context));

/* Each is set once; setting it twice sets the same value. */
static _Atomic(async_fn *) async_function;
static _Atomic(unary_fn *) retain_function;
static _Atomic(unary_fn *) release_function;
static _Atomic(copy_fn *) copy_block_function;
static _Atomic(unary_fn *) release_block_function;

bool nd_is_available(void) {
    if (atomic_load(&release_block_function)) return true;
    async_fn *async = (async_fn *)dlsym(RTLD_DEFAULT, "dispatch_async_f");
    unary_fn *retain = (unary_fn *)dlsym(RTLD_DEFAULT, "dispatch_retain");
    unary_fn *release = (unary_fn *)dlsym(RTLD_DEFAULT, "dispatch_release");
    copy_fn *copy_block = (copy_fn *)dlsym(RTLD_DEFAULT, "_Block_copy");
    unary_fn *release_block = (unary_fn *)dlsym(RTLD_DEFAULT, "_Block_release");
    if (!async || !retain || !release || !copy_block || !release_block) return false;
    atomic_store(&async_function, async);
    atomic_store(&retain_function, retain);
    atomic_store(&release_function, release);
    atomic_store(&copy_block_function, copy_block);
    /* Last, because it means that the others are set. */
    atomic_store(&release_block_function, release_block);
    return true;
}

void nd_retain_queue(void *queue) { (atomic_load(&retain_function))(queue); }

void nd_release_queue(void *queue) { (atomic_load(&release_function))(queue); }

bool nd_is_block(const void *block) {
    /* What a block begins with. Its class is in the Blocks runtime, under one of these names. */
    const void *class = *(const void *const *)block;
    Dl_info info;
    return dladdr(class, &info) && info.dli_saddr == class && info.dli_sname &&
           strncmp(info.dli_sname, "_NSConcrete", strlen("_NSConcrete")) == 0;
}

void *nd_copy_block(void *block) { return atomic_load(&copy_block_function)(block); }

void nd_release_block(void *block) { (atomic_load(&release_block_function))(block); }

void nd_async(void *queue, void *context, void (*work)(void *context)) {
    (atomic_load(&async_function))(queue, context, work);
}

void nd_call_block(void *block, int token) { ((notify_handler_t)block)(token); }

uint32_t notify_register_dispatch(const char *name, int *out_token, dispatch_queue_t queue, notify_handler_t handler) {
    return notifybus_register_dispatch(name, out_token, (void *)queue, (void *)handler);
}

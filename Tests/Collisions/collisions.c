// SPDX-License-Identifier: Apache-2.0
//
// Many texts of one FNV-1a hash, by what is weak in it. See RFC 9923 for the function.
//
// The prime is 2^40 + 435, so the lower 40 bits of the state depend on nothing but the lower 40 bits before. Two blocks of
// six letters that lead to the same lower 40 bits are found by a birthday search among some 2^20. From then on the
// upper 24 bits of the two states differ by a number that each further byte multiplies by 435, whatever the byte is. So
// in a chain of such pairs each choice adds a number of its own, modulo 2^24, to the upper bits at the end. 42 choices
// make 2^42 texts, of which 2^18 have any given end: a meeting in the middle finds them.

#include "collisions.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS = 42, HALF = PAIRS / 2, BLOCK = 6, SLOT_BITS = 22, UPPER_BITS = 24 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
static const uint64_t lower = ((uint64_t)1 << 40) - 1;
static const uint32_t upper = ((uint32_t)1 << UPPER_BITS) - 1;

static uint64_t step(uint64_t hash, const char *block) {
        for (int i = 0; i < BLOCK; i++) hash = (hash ^ (uint8_t)block[i]) * 0x100000001b3;
        return hash;
}

/* spell() - the block of a number; numbers are spread, because blocks that differ in few bits hardly ever meet */
static void spell(uint32_t number, char *block) {
        uint64_t bits = number * 0x9e3779b97f4a7c15 >> (64 - 6 * BLOCK);
        for (int i = 0; i < BLOCK; i++, bits >>= 6) block[i] = letters[bits & 63];
}

/* find_pair() - two blocks that lead from a state to states of the same lower half
 * @slots: 2^SLOT_BITS of them: the number of a block plus one, found by the state it leads to
 */
static int find_pair(uint64_t hash, uint32_t *slots, char pair[2][BLOCK]) {
        memset(slots, 0, sizeof(*slots) << SLOT_BITS);
        for (uint32_t number = 0; number < (uint32_t)7 << (SLOT_BITS - 3); number++) {
                spell(number, pair[0]);
                uint64_t state = step(hash, pair[0]) & lower;
                uint32_t place = (uint32_t)(state * 0x9e3779b97f4a7c15 >> (64 - SLOT_BITS));
                for (; slots[place]; place = (place + 1) & (((uint32_t)1 << SLOT_BITS) - 1)) {
                        spell(slots[place] - 1, pair[1]);
                        if ((step(hash, pair[1]) & lower) == state) return 1;
                }
                slots[place] = number + 1;
        }
        return 0;
}

static uint32_t sum(const uint32_t *differences, uint32_t choices) {
        uint32_t total = 0;
        for (int i = 0; i < HALF; i++)
                if (choices >> i & 1) total += differences[i];
        return total & upper;
}

int colliding_names(colliding_name *names, int count) {
        char pairs[PAIRS][2][BLOCK];
        uint32_t differences[PAIRS];
        uint32_t *slots = malloc(sizeof(*slots) << SLOT_BITS);
        // The choices of the first half, in lists by what they add up to.
        uint32_t *heads = calloc((size_t)1 << UPPER_BITS, sizeof(*heads));
        uint32_t *nexts = malloc(sizeof(*nexts) << HALF);
        int made = 0;
        if (!slots || !heads || !nexts) goto out;
        uint64_t hash = 0xcbf29ce484222325;
        for (int i = 0; i < PAIRS; i++) {
                // What has met once meets again from many a state.
                int known = 0;
                while (known < i && (step(hash, pairs[known][0]) ^ step(hash, pairs[known][1])) & lower) known++;
                if (known < i)
                        memcpy(pairs[i], pairs[known], sizeof(pairs[i]));
                else if (!find_pair(hash, slots, pairs[i]))
                        goto out;
                uint64_t first = step(hash, pairs[i][0]), second = step(hash, pairs[i][1]);
                differences[i] = (uint32_t)(second >> 40) - (uint32_t)(first >> 40);
                // What each of the bytes that follow makes of it.
                for (int byte = 0; byte < BLOCK * (PAIRS - 1 - i); byte++) differences[i] *= 435;
                hash = first;
        }
        for (uint32_t choices = 0; choices < (uint32_t)1 << HALF; choices++) {
                uint32_t end = sum(differences, choices);
                nexts[choices] = heads[end];
                heads[end] = choices + 1;
        }
        for (uint32_t choices = 0; choices < (uint32_t)1 << HALF && made < count; choices++) {
                uint32_t missing = -sum(differences + HALF, choices) & upper;
                for (uint32_t other = heads[missing]; other && made < count; other = nexts[other - 1]) {
                        for (int i = 0; i < PAIRS; i++) {
                                uint32_t choice = (i < HALF ? (other - 1) >> i : choices >> (i - HALF)) & 1;
                                memcpy(names[made].text + i * BLOCK, pairs[i][choice], BLOCK);
                        }
                        names[made++].text[PAIRS * BLOCK] = 0;
                }
        }
out:
        free(slots);
        free(heads);
        free(nexts);
        return made;
}

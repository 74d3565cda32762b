// The state of a wave on the device: one slot a (diff row, node) looked at, found through a hash table.
#pragma once
#include "common.cuh"

// What a slot's energy says of a node that was not reached.
enum Mark : int32 { CLOSED = -1, OPEN = -2 };
// No place in the table.
enum Nowhere : uint32 { NOWHERE = 0xffffffffu };

// All warps add to the same few words: each has 128 bytes to itself, so that they do not wait for each other.
inline constexpr int COUNTERS_APART = 16;
// One word each; hyphae_gpu/backends/cuda/wave.py has the same order.
enum Counter {
    SLOTS = 0 * COUNTERS_APART,       // in use; more than there are where they did not suffice
    OVERFLOW = 1 * COUNTERS_APART,    // which room did not suffice: bits of enum Room; the round has to be run again
    TOO_LONG = 2 * COUNTERS_APART,    // whether a diff reached 4,096 rounds and sweeps
    RELAXATIONS = 3 * COUNTERS_APART, // edges looked at from a frontier node
    LOST = 4 * COUNTERS_APART,        // transmissions lost
    OFFERS = 5 * COUNTERS_APART,      // offers over edges with a bandwidth that were handed out
    PENDING = 6 * COUNTERS_APART,     // edges of this round's frontier
    LIMITED = 7 * COUNTERS_APART,     // of these, edges with a bandwidth
    RISEN = 8 * COUNTERS_APART        // slots whose energy rises in this round
};
enum Room { SLOT_ROOM = 1, PENDING_ROOM = 2, OFFER_ROOM = 4 };

// An open-addressing hash table: entries of a key and a slot, EMPTY where there is none. Its size is a power of two.
struct Entry {
    uint64 key;
    int64 slot;
};
inline constexpr uint64 EMPTY = ~0ull;

struct Table {
    Entry *entries;
    int64 mask;

    // Mixes all bits of a key into the low ones (the finaliser of MurmurHash3).
    __device__ static uint64 mixed(uint64 key) {
        key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdull;
        key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ull;
        return key ^ (key >> 33);
    }

    // The place of a key; it must be there.
    __device__ int64 place_of(uint64 key) const {
        int64 place = int64(mixed(key)) & mask;
        while (entries[place].key != key) place = (place + 1) & mask;
        return place;
    }

    // Put a key that is in no entry into one; there must be room.
    __device__ int64 put(uint64 key) const {
        int64 place = int64(mixed(key)) & mask;
        while (atomicCAS(&entries[place].key, EMPTY, key) != EMPTY) place = (place + 1) & mask;
        return place;
    }
};

// Columns of the slots, one word each.
struct Slots {
    int32 *rows, *nodes;   // diff row and node number
    int32 *energies;       // at the round's start: held, or CLOSED or OPEN
    uint64 *best;          // what `packed` makes of the energy and parent, this round's offers included; 0: not reached
    int32 *hops;
    double *scores;
    int32 *rose, *unmet;   // the last step, from 1, in which it rose; in which an offer of its own did not arrive
    int64 capacity;
};

// Greater for more energy, and at the same energy for a lower parent: a maximum that no order of offers changes.
__device__ __forceinline__ uint64 packed(int32 energy, int32 parent) {
    return (uint64(uint32(energy)) << 32) | uint64(~uint32(parent));
}
__device__ __forceinline__ int32 energy_of(uint64 best) { return int32(best >> 32); }
__device__ __forceinline__ int32 parent_of(uint64 best) { return int32(~uint32(best)); }

// A word that other threads change meanwhile.
__device__ __forceinline__ int64 seen(const int64 *word) { return *static_cast<const volatile int64 *>(word); }

__device__ __forceinline__ void add(int64 *counter, int64 value) {
    atomicAdd(reinterpret_cast<uint64 *>(counter), uint64(value));
}

__device__ __forceinline__ void overflow(int64 *counters, Room room) {
    atomicOr(reinterpret_cast<uint64 *>(&counters[OVERFLOW]), uint64(room));
}

// Places in a list for the lanes that ask, one atomic a warp. All lanes have to call it.
__device__ __forceinline__ int64 place_in(int64 *counter, bool wanted) {
    uint32 wanting = __ballot_sync(ALL_LANES, wanted);
    if (wanting == 0) return 0;
    int leader = __ffs(int(wanting)) - 1;
    int64 first = 0;
    if (lane_of_warp() == leader) {
        first = int64(atomicAdd(reinterpret_cast<uint64 *>(counter), uint64(__popc(wanting))));
    }
    first = __shfl_sync(ALL_LANES, first, leader);
    return first + __popc(wanting & ((1u << lane_of_warp()) - 1u));
}

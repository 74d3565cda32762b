// The hash table of a wave's slots, made anew.
#include "wave.cuh"

// Put slots 0 .. count - 1, of different (row, node), into an empty table of twice the size at least.
extern "C" __global__ void index_slots(Entry *entries, int64 mask, const int32 *rows, const int32 *nodes,
                                       int64 node_count, int64 count) {
    Table table{entries, mask};
    for (int64 slot = first_item(); slot < count; slot += all_threads()) {
        int64 place = table.put(uint64(rows[slot] * node_count + nodes[slot]));
        entries[place].slot = slot;
    }
}

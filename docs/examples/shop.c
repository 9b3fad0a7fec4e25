#include <stdio.h>
#include "cachemark_store.h"

int main(void) {
    cm_store *store;
    if (cm_store_abi() != CM_STORE_ABI || cm_store_open("shop", &store) != CM_STORE_OK) {
        fprintf(stderr, "%s\n", cm_store_error());
        return 1;
    }
    char value[1024];
    size_t length;
    if (cm_store_set(store, "greeting", 8, "hello\n", 6, 0, 60) == CM_STORE_OK
        && cm_store_get(store, "greeting", 8, value, sizeof value, &length, NULL) == CM_STORE_OK)
        fwrite(value, 1, length, stdout);
    cm_store_close(store);
}

// SPDX-License-Identifier: Apache-2.0
// dlopen_test LIST LIBRARY...: each library gives every symbol of the list, always at one address.
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  void* handles[16];
  if (argc < 3 || argc - 2 > 16) return 2;
  for (int i = 2; i < argc; ++i) {
    handles[i - 2] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (handles[i - 2] == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }

  FILE* const list = fopen(argv[1], "r");
  if (list == NULL) {
    perror(argv[1]);
    return 1;
  }
  int symbols = 0;
  char name[256];
  while (fgets(name, sizeof(name), list) != NULL) {
    name[strcspn(name, "\n")] = '\0';
    ++symbols;
    for (int i = 2; i < argc; ++i) {
      void* const address = dlsym(handles[i - 2], name);
      if (address == NULL || address != dlsym(handles[0], name)) {
        fprintf(stderr, "%s in %s: %p\n", name, argv[i], address);
        return 1;
      }
    }
  }
  fclose(list);
  printf("%d symbols, %d libraries\n", symbols, argc - 2);
  return symbols > 100 ? 0 : 1;
}

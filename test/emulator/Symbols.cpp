//===- Symbols.cpp - what the program's symbol table says of kernels --------------===//
//
// A shared variable of a kernel is a thread-local one whose name begins with the kernel's: `_ZZ`,
// what the kernel's own name has behind `_Z`, `E`, the variable.
//
//===----------------------------------------------------------------------===//

#include "Symbols.h"

#include <cstdint>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <map>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace emulator {

namespace {

struct Table {
  std::map<std::uintptr_t, std::string> functions; ///< by address in the running program
  std::map<std::string, std::size_t> variables;    ///< thread-local ones: bytes by name
};

std::uintptr_t loadAddress() {
  std::uintptr_t address = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *object, std::size_t, void *data) {
        *static_cast<std::uintptr_t *>(data) = object->dlpi_addr;
        return 1; // the program itself comes first
      },
      &address);
  return address;
}

void read(const char *file, Table &table) {
  const auto *header = reinterpret_cast<const Elf64_Ehdr *>(file);
  const auto *sections = reinterpret_cast<const Elf64_Shdr *>(file + header->e_shoff);
  const std::uintptr_t base = loadAddress();
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    const char *names = file + sections[sections[i].sh_link].sh_offset;
    const auto *symbols = reinterpret_cast<const Elf64_Sym *>(file + sections[i].sh_offset);
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); ++s) {
      const char *name = names + symbols[s].st_name;
      if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_shndx != SHN_UNDEF)
        table.functions.emplace(base + symbols[s].st_value, name);
      else if (ELF64_ST_TYPE(symbols[s].st_info) == STT_TLS)
        table.variables[name] += symbols[s].st_size;
    }
  }
}

Table readOwn() {
  Table table;
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (file < 0)
    return table;
  if (fstat(file, &status) == 0) {
    void *memory = mmap(nullptr, std::size_t(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (memory != MAP_FAILED) {
      read(static_cast<const char *>(memory), table);
      munmap(memory, std::size_t(status.st_size));
    }
  }
  close(file);
  return table;
}

} // namespace

KernelSymbol symbolOf(const void *kernel) {
  static const Table *table = new Table(readOwn());
  KernelSymbol symbol;
  const auto found = table->functions.find(reinterpret_cast<std::uintptr_t>(kernel));
  if (found == table->functions.end())
    return symbol;
  symbol.name = found->second;
  const std::string prefix = "_ZZ" + symbol.name.substr(2) + "E";
  for (auto it = table->variables.lower_bound(prefix);
       it != table->variables.end() && it->first.compare(0, prefix.size(), prefix) == 0; ++it)
    symbol.sharedBytes += it->second;
  return symbol;
}

} // namespace emulator

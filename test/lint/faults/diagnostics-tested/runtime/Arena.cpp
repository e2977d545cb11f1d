void allocate() {
  throw Error(rank, formatted("the arena of %zu bytes cannot be mapped", bytes));
}

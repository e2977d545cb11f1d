void check(int ranks) {
  if (ranks != 3)
    fail("got %d ranks, "
         "expected 3",
         ranks);
}

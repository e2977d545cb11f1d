if (name == "gpt2")
  return;
// The MLP's second layer.
auto unit = "linear";







// Costs are linear in the number of ranks.
enum class Kind { constant, linear, cosine }; // learning-rate schedules
void linearize();

include "mlir/Pass/PassBase.td"
def Bare : Pass<"bare">;
def Options : Pass<"options"> {
  let summary = "Has too many options";
  let description = [{ Words. }];
  let options = [
    Option<"a", "a", "bool", "false", "described">,
    Option<"b", "b", "bool", "false", "">,
    Option<"c", "c", "bool", "false", "described">,
    Option<"d", "d", "bool", "false", "described">];
}

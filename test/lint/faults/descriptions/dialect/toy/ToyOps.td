include "mlir/IR/OpBase.td"
def Toy_Dialect : Dialect { let name = "toy"; let cppNamespace = "::toy"; }
def Toy_BareOp : Op<Toy_Dialect, "bare">;
def Toy_NoExampleOp : Op<Toy_Dialect, "no_example"> {
  let summary = "Has words only";
  let description = [{ Words. }];
}
def Toy_OnlyExampleOp : Op<Toy_Dialect, "only_example"> {
  let summary = "Has an example only";
  let description = [{
    ```mlir
    toy.only_example
    ```
  }];
}
def Toy_GoodOp : Op<Toy_Dialect, "good"> {
  let summary = "Has all";
  let description = [{
    Words.
    ```mlir
    toy.good
    ```
  }];
}

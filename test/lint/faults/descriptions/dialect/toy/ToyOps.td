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
def Toy_SeenOp : Op<Toy_Dialect, "seen"> {
  let summary = "Its example is another op's";
  let description = [{ Words. See `toy.container`. }];
}
def Toy_NotSeenOp : Op<Toy_Dialect, "not_seen"> {
  let summary = "The other op's example has it not";
  let description = [{ Words. See `toy.container`. }];
}
def Toy_ContainerOp : Op<Toy_Dialect, "container"> {
  let summary = "Has an example with another op";
  let description = [{
    Words.
    ```mlir
    toy.container { toy.seen }
    ```
  }];
}

include "mlir/IR/OpBase.td"
def Toy_Dialect : Dialect {
  let name = "toy";
  let description = [{
    ```mlir
    %a = toy.unknown %b : tensor<4xf32>
    ```
  }];
}

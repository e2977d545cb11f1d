//===- ShapeArguments.cpp -------------------------------------------------===//

#include "codegen/ShapeArguments.h"

#include "codegen/Elementwise.h"
#include "codegen/Names.h"
#include "dialect/nn/NNDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// "Name{/*field=*/value, ...}".
class Initializer {
public:
  explicit Initializer(StringRef name) : text(name.str() + "{") {}
  Initializer &field(StringRef name, std::string value) {
    text += (text.back() == '{' ? "/*" : ", /*") + name.str() + "=*/" + value;
    return *this;
  }
  Initializer &field(StringRef name, int64_t value) { return field(name, std::to_string(value)); }
  Initializer &field(StringRef name, bool value) {
    return field(name, std::string(value ? "true" : "false"));
  }
  operator std::string() const { return text + "}"; }

private:
  std::string text;
};

int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

std::string number(const APFloat &value, Type type) {
  return literal(value.convertToDouble(), type);
}

} // namespace

static std::string normRows(Value x, const APFloat &eps) {
  ArrayRef<int64_t> shape = shapeOf(x);
  return Initializer("NormRows")
      .field("rows", product(shape.drop_back()))
      .field("width", shape.back())
      .field("epsilon", number(eps, Float64Type::get(x.getContext())));
}

template <typename Op> static std::string attentionShape(Op op) {
  nn::AttentionLayout at = op.getLayout();
  auto strides = [](const nn::AttentionStrides &s) {
    return "{" + std::to_string(s.batch) + ", " + std::to_string(s.head) + ", " +
           std::to_string(s.position) + "}";
  };
  Initializer shape("AttentionShape");
  shape.field("batch", at.batch)
      .field("heads", at.heads)
      .field("groups", at.groups)
      .field("queries", at.queries)
      .field("keys", at.keys)
      .field("width", at.width)
      .field("scale", number(op.getScale(), Float32Type::get(op.getContext())))
      .field("causal", op.getCausal())
      .field("q", strides(at.q))
      .field("k", strides(at.k))
      .field("out", strides(at.out));
  if (op.getInputs().size() == 1)
    shape.field("part", at.part);
  return shape;
}

static std::string embeddingShape(Value table, Value ids) {
  return Initializer("EmbeddingShape")
      .field("ids", product(shapeOf(ids)))
      .field("vocabulary", shapeOf(table)[0])
      .field("width", shapeOf(table)[1]);
}

/// What lies outside of `dim`, and as elements from `start` on what `piece` has of `whole` there.
static std::string part(Value piece, Value whole, int64_t dim, int64_t start) {
  int64_t inner = product(shapeOf(whole).drop_front(dim + 1));
  return Initializer("Part")
      .field("outer", product(shapeOf(whole).take_front(dim)))
      .field("whole", shapeOf(whole)[dim] * inner)
      .field("start", start * inner)
      .field("size", shapeOf(piece)[dim] * inner);
}

std::string mlir::fsdp::shapeArgument(Operation *op) {
  // The gradient of a norm has no use for what was added to the variance.
  const APFloat zero(0.0);
  return llvm::TypeSwitch<Operation *, std::string>(op)
      .Case([&](nn::LayerNormOp op) { return normRows(op.getX(), op.getEps()); })
      .Case([&](nn::RmsNormOp op) { return normRows(op.getX(), op.getEps()); })
      .Case<nn::LayerNormGradOp, nn::RmsNormGradOp>(
          [&](auto op) { return normRows(op.getX(), zero); })
      .Case([](nn::SoftmaxOp op) -> std::string {
        ArrayRef<int64_t> shape = shapeOf(op.getX());
        return Initializer("SoftmaxRows")
            .field("rows", product(shape.drop_back()))
            .field("width", shape.back());
      })
      .Case<nn::AttentionOp, nn::AttentionGradOp>([](auto op) {
        return attentionShape(op);
      })
      .Case([](nn::RopeOp op) -> std::string {
        ArrayRef<int64_t> shape = shapeOf(op.getX());
        return Initializer("RopeShape")
            .field("blocks", product(shape.take_front(op.getDim())))
            .field("positions", shape[op.getDim()])
            .field("inner", product(shape.drop_front(op.getDim() + 1).drop_back()))
            .field("width", shape.back())
            .field("theta", number(op.getTheta(), Float64Type::get(op.getContext())))
            .field("inverse", op.getInverse());
      })
      .Case([](nn::EmbeddingOp op) { return embeddingShape(op.getTable(), op.getIds()); })
      .Case([](nn::EmbeddingGradOp op) { return embeddingShape(op.getResult(), op.getIds()); })
      .Case([](nn::SliceOp op) {
        return part(op.getResult(), op.getInput(), op.getDim(), op.getStart());
      })
      .Case([](nn::PadOp op) {
        return part(op.getInput(), op.getResult(), op.getDim(), op.getLow());
      })
      .Case([](nn::ConcatOp op) -> std::string {
        return "/*outer=*/" +
               std::to_string(product(shapeOf(op.getResult()).take_front(op.getDim())));
      })
      .Default([](Operation *) -> std::string {
        llvm_unreachable("an op that the runtime has no shape for");
      });
}

std::string mlir::fsdp::dropoutMask(DropoutOp op, std::string first) {
  // From the innermost dimension on; dimensions that lie together in the whole tensor are joined.
  ArrayRef<int64_t> part = shapeOf(op.getResult()), whole = op.getGlobalShape();
  SmallVector<std::pair<int64_t, int64_t>> extents = {{1, 1}};
  for (int64_t dim = part.size() - 1, stride = 1; dim >= 0; stride *= whole[dim--]) {
    auto &[size, step] = extents.back();
    if (size * step == stride)
      size *= part[dim];
    else
      extents.push_back({part[dim], stride});
  }
  std::string list;
  for (auto [size, stride] : llvm::reverse(extents))
    list +=
        (list.empty() ? "{" : ", {") + std::to_string(size) + ", " + std::to_string(stride) + "}";
  return Initializer("DropoutMask<" + std::to_string(extents.size()) + ">")
      .field("rate", number(op.getRate(), Float64Type::get(op.getContext())))
      .field("name", "hashName(\"" + escaped(op.getName()) + "\")")
      .field("first", std::move(first))
      .field("extents", "{" + list + "}");
}

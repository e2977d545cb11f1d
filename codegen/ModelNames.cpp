//===- ModelNames.cpp -----------------------------------------------------===//

#include "codegen/ModelNames.h"

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

/// The parameter, or its gradient, that a part of a flat unit is; "" for other parts.
static std::string memberName(SubviewOp subview, const SymbolTable *symbols) {
  auto buffer = subview.getBuffer().getDefiningOp<BufferOp>();
  if (!buffer || !buffer.getStorageAttr() ||
      (buffer.getPersistent() && buffer.getWhat() != StorageOp::copy))
    return "";
  bool isGradient = buffer.getWhat() == BufferOp::gradient;
  auto module = buffer->getParentOfType<ModuleOp>();
  auto lookup = [&](FlatSymbolRefAttr symbol) {
    return symbols ? symbols->lookup(symbol.getAttr()) : module.lookupSymbol(symbol);
  };
  auto storage = cast<StorageOp>(lookup(buffer.getStorageAttr()));
  for (auto member : storage.getMembers().getAsRange<MemberAttr>()) {
    if (member.getOffset() != static_cast<int64_t>(subview.getOffset()))
      continue;
    auto param = dyn_cast_or_null<ParamOp>(lookup(member.getParam()));
    if (param &&
        param.getComputeType().getNumElements() == subview.getType().getTensor().getNumElements())
      return param.getSymName().str() + (isGradient ? ".grad" : "");
  }
  return "";
}

std::string mlir::fsdp::bufferName(Value buffer, const SymbolTable *symbols) {
  if (auto op = buffer.getDefiningOp<BufferOp>())
    return op.getName().str();
  auto subview = buffer.getDefiningOp<SubviewOp>();
  if (std::string name = memberName(subview, symbols); !name.empty())
    return name;
  return bufferName(subview.getBuffer(), symbols) + ".at." + std::to_string(subview.getOffset());
}

std::string ModelName::whole() const { return unit ? unit.str() + "." + name : name; }

/// The text after `unit` if `text` contains it as a component; otherwise nothing.
static std::optional<StringRef> behindUnit(StringRef text, StringRef unit) {
  auto isSeparator = [](char c) { return c == '.' || c == ' '; };
  for (size_t at = text.find(unit); at != StringRef::npos; at = text.find(unit, at + 1)) {
    StringRef rest = text.substr(at + unit.size());
    if ((at == 0 || isSeparator(text[at - 1])) && rest.size() > 1 && isSeparator(rest.front()))
      return rest.drop_front();
  }
  return std::nullopt;
}

/// `text` without " stage 1 microbatch 2" of a launch, or ".stage.1.microbatch.2" of its buffer: a
/// function serves all microbatches.
static std::string withoutMicrobatch(StringRef text) {
  constexpr StringRef word = "microbatch", stage = "stage";
  const size_t at = text.rfind(word); // behind the names of the model
  if (at == StringRef::npos || at == 0)
    return text.str();
  StringRef before = text.take_front(at - 1), behind = text.drop_front(at + word.size());
  if (behind.size() < 2 || !llvm::isDigit(behind[1]))
    return text.str();
  if (StringRef name = before.rtrim("0123456789");
      name.size() < before.size() && name.drop_back().ends_with(stage))
    before = name.drop_back(stage.size() + 2);
  return (before + behind.drop_front().drop_while(llvm::isDigit)).str();
}

static bool isNumber(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isDigit(c); });
}

/// A name of a launch as buffers have it.
static std::string dotted(StringRef name) {
  std::string result = name.str();
  std::replace(result.begin(), result.end(), ' ', '.');
  return result;
}

/// "layer_norm" and "layerNorm" are "layernorm".
static std::string withoutCase(StringRef text) {
  std::string result;
  for (char c : text)
    if (c != '_')
      result += llvm::toLower(c);
  return result;
}

namespace {

/// The parts of a name in a unit: "ln_2.layerNorm.grad layer_norm_grad.1".
struct NameParts {
  SmallVector<StringRef> components; ///< ln_2, layerNorm, grad
  SmallVector<StringRef> kind;       ///< layer_norm_grad, 1
  size_t operation = 0;              ///< among the components; 0 if no place precedes it

  explicit NameParts(StringRef name) {
    auto [before, behind] = name.split(' ');
    before.split(components, '.');
    llvm::SplitString(behind, kind, ". ");
    operation = components.size();
    while (operation > 0 &&
           (isNumber(components[operation - 1]) ||
            llvm::is_contained({"grad", "again", "cast"}, components[operation - 1])))
      --operation;
    operation -= operation > 0;
  }
  std::string place() const { return llvm::join(ArrayRef(components).take_front(operation), "."); }
  /// Whether `word` of the kind repeats a component.
  bool repeats(StringRef word) const {
    return llvm::any_of(components, [&](StringRef component) {
      std::string said = withoutCase(component), kind = withoutCase(word);
      return kind == said || kind == said + "grad";
    });
  }
};

} // namespace

void ModelNames::create(ModuleOp module, ProgramOp program, const SymbolTable &symbols) {
  llvm::StringMap<StringAttr> unitOfParam;
  for (ParamOp param : module.getOps<ParamOp>())
    if (StringAttr unit = param.getUnitAttr()) {
      positions.try_emplace(unit, static_cast<int>(positions.size()));
      unitOfParam[param.getSymName()] = unit;
    }
  llvm::StringMap<StringAttr> unitOfLaunch; // by name
  llvm::DenseMap<Value, StringAttr> units;
  llvm::StringMap<StringRef> launches; // by their names as in the names of buffers
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    if (buffer.getStorageAttr())
      if (auto storage = symbols.lookup<StorageOp>(buffer.getStorageAttr().getValue());
          storage && !storage.getMembers().empty())
        units[buffer.getResult()] =
            unitOfParam.lookup(cast<MemberAttr>(storage.getMembers()[0]).getParam().getValue());
  auto forEachLaunch = [&](auto visit) {
    for (auto segment : program.getBody().front().getOps<SegmentOp>())
      for (auto launch : segment.getBody().front().getOps<LaunchOp>())
        visit(launch);
  };
  forEachLaunch([&](LaunchOp launch) {
    StringAttr unit = getStructure(launch).unit;
    launches.try_emplace(dotted(launch.getName()), launch.getName());
    if (!unit)
      return;
    unitOfLaunch.try_emplace(launch.getName(), unit);
    for (Value out : launch.getOuts())
      units.try_emplace(out, unit);
    if (auto rest = behindUnit(launch.getName(), unit)) {
      NameParts parts(*rest);
      std::string place = unit.str() + "." + parts.place();
      if (parts.operation > 0 && !symbols.lookup<StorageOp>(place))
        operations[place].try_emplace(parts.components[parts.operation]);
    }
  });
  forEachLaunch([&](LaunchOp launch) {
    launchesAndEvents.try_emplace(launch, shorten(launch.getName(), getStructure(launch).unit));
  });
  for (auto event : program.getBody().front().getOps<EventOp>())
    launchesAndEvents.try_emplace(event,
                                  shorten(event.getName(), unitOfLaunch.lookup(event.getName())));
  auto add = [&](Value buffer) {
    if (buffers.contains(buffer))
      return;
    std::string text = bufferName(buffer, &symbols);
    StringRef param = text;
    param.consume_back(".grad");
    StringAttr unit = unitOfParam.lookup(param);
    // Results are named after their launch, and numbered if there are several.
    auto [name, number] = StringRef(text).rsplit('.');
    if (auto launch = launches.find(dotted(text)); launch != launches.end())
      text = launch->second.str();
    else if (launch = launches.find(dotted(name)); launch != launches.end() && isNumber(number))
      text = (launch->second +
              (number == "0" ? "" : (launch->second.contains(' ') ? "." : " ") + number.str()))
                 .str();
    buffers.try_emplace(buffer, shorten(text, unit ? unit : units.lookup(buffer)));
  };
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    add(buffer);
  forEachLaunch([&](LaunchOp launch) {
    for (ValueRange used : {ValueRange(launch.getIns()), ValueRange(launch.getOuts())})
      for (Value buffer : used) {
        add(buffer);
        // No launch may use the whole.
        if (auto subview = buffer.getDefiningOp<SubviewOp>())
          add(subview.getBuffer());
      }
  });
}

ModelName ModelNames::shorten(StringRef name, StringAttr unit) const {
  const std::string text = withoutMicrobatch(name);
  std::optional<StringRef> rest = unit ? behindUnit(text, unit) : std::nullopt;
  NameParts parts(rest.value_or(text));
  SmallVector<StringRef> words;
  const auto there = rest ? operations.find(unit.str() + "." + parts.place()) : operations.end();
  const bool isAlone = there != operations.end() && there->second.size() == 1 &&
                       there->second.contains(parts.components[parts.operation]);
  for (auto [index, component] : llvm::enumerate(parts.components))
    if (!isAlone || index != parts.operation)
      words.push_back(component);
  for (StringRef word : parts.kind)
    if (isNumber(word) || !parts.repeats(word))
      words.push_back(word);
  return {rest ? unit : StringAttr(), llvm::join(words, ".")};
}

std::string ModelNames::seenFrom(StringAttr unit, const ModelName &name) const {
  if (!unit || !name.unit)
    return name.whole();
  if (name.unit == unit)
    return name.name;
  auto own = positions.find(unit), other = positions.find(name.unit);
  if (own == positions.end() || other == positions.end())
    return name.whole();
  const int distance = other->second - own->second;
  const std::string count = std::abs(distance) > 1 ? std::to_string(std::abs(distance)) + "." : "";
  return (distance > 0 ? "next." : "previous.") + count + name.name;
}

//===- ModelNames.cpp -----------------------------------------------------===//

#include "codegen/ModelNames.h"

#include "dialect/fsdp/Structure.h"
#include "llvm/ADT/SmallString.h"
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

static bool isNumber(StringRef text) {
  return !text.empty() && llvm::all_of(text, [](char c) { return llvm::isDigit(c); });
}

/// A name of a launch as buffers have it, in `storage` where it differs.
static StringRef dotted(StringRef name, SmallVectorImpl<char> &storage) {
  if (!name.contains(' '))
    return name;
  storage.assign(name.begin(), name.end());
  std::replace(storage.begin(), storage.end(), ' ', '.');
  return StringRef(storage.data(), storage.size());
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
  /// Whether `word` of the kind repeats a component.
  bool repeats(StringRef word) const {
    return llvm::any_of(components, [&](StringRef component) {
      std::string said = withoutCase(component), kind = withoutCase(word);
      return kind == said || kind == said + "grad";
    });
  }
};

} // namespace

namespace {

/// Makes the names of a program short. Equal layers have the same names in their units, which are
/// taken apart once.
class Shortener {
public:
  explicit Shortener(const SymbolTable &symbols) : symbols(symbols) {}

  /// Notes the operation that the launch `name` of `unit` performs at a place.
  void addOperation(StringRef name, StringAttr unit);
  /// Notes that the launch `name` is of an input for `microbatch`. A function serves all
  /// microbatches: "input tokens microbatch 2 copy" is called "input tokens copy".
  void addMicrobatch(StringRef name, uint64_t microbatch);
  /// A place that has one operation is called without it. To be called after all are added.
  ModelName shorten(StringRef name, StringAttr unit);

private:
  /// The parts of a name in a unit.
  struct Said {
    std::string place;          ///< "ln_2"
    StringRef operation;        ///< "layerNorm"
    bool isPlaced = false;      ///< a place precedes the operation
    std::string all, withoutIt; ///< the short name, with and without the operation
  };
  /// The operations of a place.
  struct Operations {
    StringRef first;
    bool areSeveral = false, areOfStorage = false;
  };

  const Said &takeApart(StringRef name);
  StringRef placeIn(StringAttr unit, const Said &said) {
    scratch.clear();
    return (unit.getValue() + "." + said.place).toStringRef(scratch);
  }

  const SymbolTable &symbols;
  llvm::StringMap<Said> names;
  llvm::StringMap<std::string> withoutMicrobatch; ///< by name
  llvm::StringMap<Operations> operations;         ///< by "h.0.ln_2"
  SmallString<128> scratch;
};

} // namespace

const Shortener::Said &Shortener::takeApart(StringRef name) {
  auto [entry, isNew] = names.try_emplace(name);
  Said &said = entry->second;
  if (!isNew)
    return said;
  const NameParts parts(entry->first());
  said.place = llvm::join(ArrayRef(parts.components).take_front(parts.operation), ".");
  said.operation = parts.components[parts.operation];
  said.isPlaced = parts.operation > 0;
  SmallVector<StringRef> words(parts.components), fewer(parts.components);
  fewer.erase(fewer.begin() + static_cast<ptrdiff_t>(parts.operation));
  for (StringRef word : parts.kind)
    if (isNumber(word) || !parts.repeats(word)) {
      words.push_back(word);
      fewer.push_back(word);
    }
  said.all = llvm::join(words, ".");
  said.withoutIt = llvm::join(fewer, ".");
  return said;
}

void Shortener::addOperation(StringRef name, StringAttr unit) {
  std::optional<StringRef> rest = behindUnit(name, unit);
  if (!rest)
    return;
  const Said &said = takeApart(*rest);
  if (!said.isPlaced)
    return;
  const StringRef place = placeIn(unit, said);
  auto [entry, isNew] = operations.try_emplace(place);
  Operations &there = entry->second;
  if (isNew) {
    there.first = said.operation;
    there.areOfStorage = symbols.lookup<StorageOp>(place) != nullptr;
  }
  there.areSeveral |= there.first != said.operation;
}

void Shortener::addMicrobatch(StringRef name, uint64_t microbatch) {
  const std::string number = " microbatch " + std::to_string(microbatch);
  const auto [before, behind] = name.rsplit(number);
  withoutMicrobatch[name] = (before + behind).str();
}

ModelName Shortener::shorten(StringRef name, StringAttr unit) {
  const auto known = withoutMicrobatch.find(name);
  const StringRef text = known == withoutMicrobatch.end() ? name : StringRef(known->second);
  std::optional<StringRef> rest = unit ? behindUnit(text, unit) : std::nullopt;
  const Said &said = takeApart(rest.value_or(text));
  if (!rest || !said.isPlaced)
    return {rest ? unit : StringAttr(), said.all};
  const auto there = operations.find(placeIn(unit, said));
  const bool isAlone = there != operations.end() && !there->second.areOfStorage &&
                       !there->second.areSeveral && there->second.first == said.operation;
  return {unit, isAlone ? said.withoutIt : said.all};
}

void ModelNames::create(ModuleOp module, ProgramOp program, const SymbolTable &symbols) {
  llvm::StringMap<StringAttr> unitOfParam;
  for (ParamOp param : module.getOps<ParamOp>())
    if (StringAttr unit = param.getUnitAttr()) {
      positions.try_emplace(unit, static_cast<int>(positions.size()));
      unitOfParam[param.getSymName()] = unit;
    }
  llvm::DenseMap<Value, StringAttr> units;
  llvm::StringMap<StringRef> launches; // by their names as in the names of buffers
  SmallString<128> scratch;
  Shortener shortener(symbols);
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    if (buffer.getStorageAttr())
      if (auto storage = symbols.lookup<StorageOp>(buffer.getStorageAttr().getAttr());
          storage && !storage.getMembers().empty())
        units[buffer.getResult()] =
            unitOfParam.lookup(cast<MemberAttr>(storage.getMembers()[0]).getParam().getValue());
  auto forEachLaunch = [&](auto visit) {
    for (auto segment : program.getBody().front().getOps<SegmentOp>())
      for (auto launch : segment.getBody().front().getOps<LaunchOp>())
        visit(launch);
  };
  // Inputs are of no stage, so that names have their microbatches; copies follow their loads.
  llvm::DenseMap<Value, uint64_t> microbatches; ///< by staged buffer
  auto microbatchOf = [&](LaunchOp launch) -> std::optional<uint64_t> {
    Operation &op = launch.getBody().front().front();
    if (auto input = dyn_cast<InputOp>(op)) {
      if (input.getMicrobatch())
        microbatches[launch.getOuts().front()] = *input.getMicrobatch();
      return input.getMicrobatch();
    }
    auto staged = isa<FlattenOp>(op) && !launch.getIns().empty()
                      ? microbatches.find(launch.getIns().front())
                      : microbatches.end();
    return staged == microbatches.end() ? std::nullopt : std::optional(staged->second);
  };
  // Launches of all other microbatches have one name; so have their buffers.
  using Key = std::tuple<Attribute, Attribute>; // name and unit
  llvm::DenseMap<Key, const ModelName *> ofLaunches;
  unsigned count = 0;
  forEachLaunch([&](LaunchOp launch) {
    ++count;
    const StringAttr unit = getStructure(launch).unit, name = launch.getNameAttr();
    if (unit)
      for (Value out : launch.getOuts())
        units.try_emplace(out, unit);
    const std::optional<uint64_t> microbatch = microbatchOf(launch);
    if (!ofLaunches.try_emplace(Key(name, unit)).second)
      return;
    launches.try_emplace(dotted(name, scratch), name);
    if (microbatch)
      shortener.addMicrobatch(name, *microbatch);
    if (unit)
      shortener.addOperation(name, unit);
  });
  launchesAndEvents.reserve(count);
  buffers.reserve(2 * count); // most write one and read another one's
  auto shorten = [&](StringRef text, StringAttr unit) {
    return &names.emplace_back(shortener.shorten(text, unit));
  };
  forEachLaunch([&](LaunchOp launch) {
    const StringAttr unit = getStructure(launch).unit;
    const ModelName *&name = ofLaunches[Key(launch.getNameAttr(), unit)];
    if (!name)
      name = shorten(launch.getName(), unit);
    launchesAndEvents.try_emplace(launch, name);
    for (Value event : launch.getRecords())
      if (event.getDefiningOp<EventOp>().getName() == launch.getFullName())
        launchesAndEvents.try_emplace(event.getDefiningOp(), name);
  });
  for (auto event : program.getBody().front().getOps<EventOp>()) // with names of their own
    if (auto [entry, isNew] = launchesAndEvents.try_emplace(event); isNew)
      entry->second = shorten(event.getName(), nullptr);
  auto nameOf = [&](StringRef text, StringAttr unitOfUses) {
    std::string own;
    StringRef param = text;
    param.consume_back(".grad");
    StringAttr unit = unitOfParam.lookup(param);
    // Results are named after their launch, and numbered if there are several.
    auto [name, number] = text.rsplit('.');
    if (auto launch = launches.find(dotted(text, scratch)); launch != launches.end())
      text = launch->second;
    else if (launch = isNumber(number) ? launches.find(dotted(name, scratch)) : launches.end();
             launch != launches.end())
      text = own =
          (launch->second +
           (number == "0" ? "" : (launch->second.contains(' ') ? "." : " ") + number.str()))
              .str();
    return shorten(text, unit ? unit : unitOfUses);
  };
  llvm::DenseMap<Key, const ModelName *> ofWholes;
  // By name, storage and contents of the whole, offset, type and unit.
  llvm::DenseMap<std::tuple<Attribute, Attribute, Attribute, Attribute, Type, Attribute>,
                 const ModelName *>
      ofParts;
  auto add = [&](Value buffer) {
    auto [entry, isNew] = buffers.try_emplace(buffer);
    if (!isNew)
      return;
    const StringAttr unit = units.lookup(buffer);
    if (auto whole = buffer.getDefiningOp<BufferOp>()) {
      const ModelName *&known = ofWholes[Key(whole.getNameAttr(), unit)];
      if (!known)
        known = nameOf(whole.getName(), unit);
      entry->second = known;
      return;
    }
    auto part = buffer.getDefiningOp<SubviewOp>();
    auto whole = part.getBuffer().getDefiningOp<BufferOp>();
    const ModelName *apart = nullptr;
    const ModelName *&known =
        whole ? ofParts[{whole.getNameAttr(), whole.getStorageAttr(), whole.getWhatAttr(),
                         part.getOffsetAttr(), part.getType(), unit}]
              : apart;
    if (!known)
      known = nameOf(bufferName(buffer, &symbols), unit);
    entry->second = known;
  };
  for (auto buffer : program.getBody().front().getOps<BufferOp>())
    add(buffer);
  forEachLaunch([&](LaunchOp launch) {
    for (Value buffer : launch.getBuffers()) {
      add(buffer);
      // No launch may use the whole.
      if (auto subview = buffer.getDefiningOp<SubviewOp>())
        add(subview.getBuffer());
    }
  });
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

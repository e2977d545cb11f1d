std::string emit(Operation *op) {
  return TypeSwitch<Operation *, std::string>(op)
      .Case([](math::ExpOp) { return "exp"; })
      .Default([](Operation *) { return ""; });
}

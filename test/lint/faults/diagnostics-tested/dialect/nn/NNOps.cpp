LogicalResult verify() {
  // emitOpError("only spoken of in a comment")
  if (a)
    return emitOpError("name '") << name << "' stands twice; " << "rename one of the two";
  if (b)
    return emitOpError() << "expected " << n << " operands but "
                         << "the notation has too few";
  return emitError("an error that "
                   "is tested over two lines");
}

//===- Model.h - describes a toy --------------------------------*- C++ -*-===//
//
// A toy model.
//
//===----------------------------------------------------------------------===//

#ifndef DSL_MODEL_H
#define DSL_MODEL_H

/// What a toy is made of.
int parts(int toys = 1);

#endif // DSL_MODEL_H

//===- Message.h - what a call complains about ------------------*- C++ -*-===//

#ifndef TEST_UNIT_TOKENIZER_MESSAGE_H
#define TEST_UNIT_TOKENIZER_MESSAGE_H

#include "base/Error.h"

#include <string>

/// The message of the error that `call` throws; "no error" if it throws none.
template <typename Call> std::string messageOf(Call call) {
  try {
    call();
  } catch (const base::Error &error) {
    return error.what();
  }
  return "no error";
}

#endif // TEST_UNIT_TOKENIZER_MESSAGE_H

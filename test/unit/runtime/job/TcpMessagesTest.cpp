// What arrives over TCP may come from anybody: messages as they are written, and as they are not.
// Under a sanitizer (libclang-rt-22-dev, -fsanitize=address,undefined) this also finds what reads
// past the end of what came.
#include "base/PrintableText.h"
#include "base/WaitCounter.h"
#include "runtime/job/ControlChannel.h"
#include "runtime/job/TcpRendezvous.h"
#include "test/Extent.h"
#include "test/unit/runtime/comm/FreePort.h"

#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>

using namespace base;
using namespace fsdp::rt;

namespace {

std::string hex(const std::string &digest) {
  std::string text;
  for (unsigned char byte : digest)
    text += format("%02x", byte);
  return text;
}

// FIPS 180-4's examples, and RFC 4231's test cases 1, 2 and 6.
TEST(Sha256, IsTheStandards) {
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(hmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(PrintableText, LeavesOutTheMiddleOfALongMessage) {
  const std::string begin = "got '", end = "', expected less";
  EXPECT_EQ(printableMessage(begin + "\n" + end), "got '\\n', expected less");
  std::string whole(4000, 'y');
  EXPECT_EQ(printableMessage(whole), whole);
  EXPECT_EQ(printableMessage(begin + std::string(5000, 'y') + end),
            begin + std::string(995, 'y') + " ... (3021 bytes left out) ... " +
                std::string(984, 'y') + end);
  std::string umlauts; // of two bytes each, of which the second is at the place of each cut
  for (int i = 0; i < 2500; ++i)
    umlauts += "\u00e4";
  const std::string cut = printableMessage("x" + umlauts + "x");
  EXPECT_EQ(cut, "x" + umlauts.substr(0, 998) + " ... (3004 bytes left out) ... " +
                     umlauts.substr(0, 998) + "x");
}

TEST(PrintableText, KeepsLineEndsOfMessagesOfSeveralLines) {
  EXPECT_EQ(printableLines("a\n\tb\r\x1b[2J\xc2\x9b\xe9"), "a\n\tb\\x0D\\x1B[2J\\xC2\\x9B\\xE9");
  EXPECT_EQ(printableLines(std::string(4001, '\n')),
            std::string(1000, '\n') + " ... (2001 bytes left out) ... " + std::string(1000, '\n'));
}

TEST(PrintableText, EscapesControlCharactersAndInvalidUtf8) {
  const std::string shown = printable("a\x1b[2Jb\n\t\r\x7f\xc2\x9b\xc3\xa9\\n");
  EXPECT_EQ(shown, "a\\x1B[2Jb\\n\\t\\r\\x7F\\xC2\\x9B\u00e9\\n");
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  // Of Latin 1, cut, too long, a surrogate, over U+10FFFF; and their neighbours, which are UTF-8.
  for (const char *text : {"\xe9", "\xe2\x82", "\xc1\xa1", "\xe0\x9f\xbf", "\xed\xa0\x80",
                           "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"})
    EXPECT_EQ(printable(text).size(), 4 * std::string_view(text).size()) << printable(text);
  for (const std::string text :
       {"\u00e9", "\u0800", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff"})
    EXPECT_EQ(inQuotes(text), "'" + text + "'");
  EXPECT_EQ(inQuotes("\xff'"), "'\\xFF''");
}

TEST(PrintableText, KeepsCommandsFromTerminals) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc", 100), "a?[2Jb?c");
  EXPECT_EQ(printable(std::string_view("ab\0cd", 5), 100), "ab");
  EXPECT_EQ(printable("abcdef", 3), "abc");
  EXPECT_EQ(printable("ab\u00e9", 3), "ab?");
  EXPECT_EQ(printable("\xc2\x9b"
                      "1m\xc3\xa9",
                      100),
            "?1m\xc3\xa9");
  EXPECT_EQ(printableHost("node-0.b_c%s/x"), "node-0.b_c?s?x");
  EXPECT_EQ(printableHost(std::string(500, 'a')).size(), 63u);
}

JoinRequest someRequest() {
  JoinRequest request;
  request.rank = 1;
  request.size = 2;
  request.port = 4000;
  request.machine = "machine";
  request.host = "node1";
  request.job = "'mlp'";
  request.identity.add("--lr", "0.1");
  request.identity.add("--shuffle", "");
  request.identity.add("--init", std::nullopt);
  request.nonce = randomNonce();
  return request;
}

JoinAnswer someAnswer(int size) {
  std::string reason;
  JoinAnswer answer{JoinAnswer::AllJoined, 7, "a reason", {}};
  for (int rank = 0; rank < size; ++rank)
    answer.peers.push_back(
        {rank % 2, resolve(rank % 2 ? "127.0.0.1" : "::1", 4000 + rank, reason).at(0), "node"});
  return answer;
}

TEST(TcpMessages, ReadBackTheirOutput) {
  const JoinRequest request = someRequest();
  const auto read = JoinRequest::decode(request.encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->host, "node1");
  EXPECT_EQ(read->nonce, request.nonce);
  EXPECT_EQ(read->identity.differenceFrom(request.identity, 1), "");
  const auto answer = JoinAnswer::decode(someAnswer(3).encode(), 3);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->peers[1].address.describe(), "127.0.0.1:4001");
  EXPECT_EQ(answer->peers[2].address.describe(), "[::1]:4002");
  EXPECT_FALSE(JoinAnswer::decode(someAnswer(3).encode(), 4));
  EXPECT_LE(someAnswer(64).encode().size(), JoinAnswer::most(64));
  const auto connect = ConnectRequest::decode(ConnectRequest{5, 6, 2, 1}.encode(), 3);
  ASSERT_TRUE(connect);
  EXPECT_EQ(connect->from, 2);
  EXPECT_FALSE(ConnectRequest::decode(ConnectRequest{5, 6, 3, 1}.encode(), 3));
}

TEST(TcpMessages, ProveTheToken) {
  const std::string frame = sealFrame(FrameKind::Join, "payload", "token", "context");
  EXPECT_EQ(frameBytes(frame, FrameKind::Join, 100), frame.size());
  EXPECT_EQ(openFrame(frame, "token", "context"), "payload");
  EXPECT_FALSE(openFrame(frame, "other", "context"));
  EXPECT_FALSE(openFrame(frame, "token", "replayed"));
  EXPECT_EQ(frame.find("token"), frame.npos);
  EXPECT_EQ(frameBytes(frame, FrameKind::Join, 3), 0u) << "too long";
  EXPECT_EQ(frameBytes(frame, FrameKind::Answer, 100), 0u);
  EXPECT_EQ(frameBytes(frame.substr(0, 9), FrameKind::Join, 100), kFrameHeader);
  for (std::size_t at = 0; at < frame.size(); ++at) {
    std::string changed = frame;
    changed[at] ^= 1;
    EXPECT_FALSE(openFrame(changed, "token", "context")) << at;
  }
}

// A status of 0 would make a failed job one that is done; one beyond 255 wraps.
TEST(TcpMessages, ClampTheStatusOfAPeer) {
  for (auto [sent, expected] : {std::pair{0, 1}, {-5, 1}, {3, 3}, {255, 255}, {256, 255}}) {
    char bytes[ControlMessage::kMax];
    const Error error = Error("boom\x1b[1m", sent).at(1, "action");
    const std::size_t size = ControlMessage::encode(ControlMessage::Failed, &error, bytes);
    ControlMessage message;
    ASSERT_EQ(ControlMessage::decode({bytes, size}, 2, message), size);
    EXPECT_EQ(message.error->status(), expected);
    EXPECT_EQ(message.error->describe(), "rank 1, 'action': boom\\x1B[1m");
    // Of a rank that the job does not have.
    ASSERT_EQ(ControlMessage::decode({bytes, size}, 1, message), size);
    EXPECT_EQ(message.error->rank(), -1);
  }
}

// What the ranks elsewhere have to know of an error, beside its text.
TEST(TcpMessages, KeepTheKindOfAnError) {
  for (int kind = 0; kind < 4; ++kind) {
    char bytes[ControlMessage::kMax];
    Error error("boom");
    if (kind & 1)
      error = error.byAll();
    if (kind & 2)
      error = error.asRefusal();
    const std::size_t size = ControlMessage::encode(ControlMessage::Failed, &error, bytes);
    ControlMessage message;
    ASSERT_EQ(ControlMessage::decode({bytes, size}, 1, message), size);
    EXPECT_EQ(message.error->isByAll(), bool(kind & 1));
    EXPECT_EQ(message.error->isRefusal(), bool(kind & 2));
  }
}

//===----------------------------------------------------------------------===//
// What is no message
//===----------------------------------------------------------------------===//

/// Changes some bytes, cuts, repeats, and writes numbers that sizes might be read from.
std::string mutate(std::string text, std::mt19937 &random) {
  const auto below = [&](std::size_t n) { return n ? random() % n : 0; };
  for (std::size_t changes = 1 + below(6); changes-- > 0;) {
    const std::size_t at = below(text.size());
    switch (below(6)) {
    case 0:
      if (!text.empty())
        text[at] = static_cast<char>(random());
      break;
    case 1:
      text.resize(at);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size()), below(64)));
      break;
    case 3:
      text.append(below(9000), static_cast<char>(random()));
      break;
    default: {
      constexpr std::uint64_t numbers[] = {
          0,    1,    2,       28,         29,         63,    64,         255,       4095,
          8192, 8193, 1 << 20, 0x7fffffff, 0x80000000, ~0ull, ~0ull - 47, 1ull << 63};
      const std::uint64_t number = numbers[below(std::size(numbers))];
      if (text.size() >= sizeof number)
        std::memcpy(&text[below(text.size() - 7) / 8 * 8], &number, sizeof number);
    }
    }
  }
  return text;
}

void expectPrintable(const std::string &text) {
  for (unsigned char c : text)
    ASSERT_FALSE(c < 0x20 || c == 0x7f) << int(c);
}

/// Reads text as each of the messages, from memory of exactly its size.
void readAsAll(const std::string &text) {
  const std::unique_ptr<char[]> exact(new char[text.size()]);
  std::memcpy(exact.get(), text.data(), text.size());
  const std::string_view bytes(exact.get(), text.size());
  for (FrameKind kind : {FrameKind::Challenge, FrameKind::Join, FrameKind::Answer})
    if (const std::size_t whole = frameBytes(bytes, kind, 8192)) {
      ASSERT_LE(whole, kFrameOverhead + 8192);
    }
  openFrame(bytes, "token", "context");
  if (const auto request = JoinRequest::decode(bytes)) {
    expectPrintable(request->host + request->machine + request->job);
    ASSERT_GE(request->rank, 0);
    for (const RunIdentity::Field &field : request->identity.fields())
      expectPrintable(field.name + field.value.value_or(""));
    ASSERT_LE(request->identity.text().size(), RunIdentity::kMaxBytes);
  }
  if (const auto answer = JoinAnswer::decode(bytes, 3)) {
    expectPrintable(answer->reason);
    for (const PeerInfo &peer : answer->peers) {
      ASSERT_LT(peer.machine, 3);
      ASSERT_TRUE(peer.address.host.empty() || isNumericHost(peer.address.host));
    }
  }
  ConnectRequest::decode(bytes, 3);
  ControlMessage message;
  for (std::string_view left = bytes;;) {
    const std::size_t taken = ControlMessage::decode(left, 3, message);
    if (taken == 0 || taken == ControlMessage::kMalformed)
      break;
    ASSERT_LE(taken, left.size());
    if (message.error) {
      ASSERT_TRUE(message.error->status() >= 1 && message.error->status() <= 255);
      expectPrintable(message.error->describe());
    }
    left.remove_prefix(taken);
  }
}

TEST(TcpMessages, SurviveMalformedMessages) {
  std::mt19937 random(20260101);
  char control[ControlMessage::kMax];
  const Error error = Error(std::string(4000, 'x'), 1).at(1, std::string(400, 'y'));
  const std::size_t size = ControlMessage::encode(ControlMessage::Failed, &error, control);
  const std::vector<std::string> seeds = {
      someRequest().encode(),
      someAnswer(3).encode(),
      ConnectRequest{1, 2, 2, 1}.encode(),
      std::string(control, size),
      sealFrame(FrameKind::Join, someRequest().encode(), "token", "context"),
      sealFrame(FrameKind::Answer, someAnswer(3).encode(), "token", "context"),
      someRequest().identity.text()};
  const std::int64_t rounds = fsdp::test::casesOf(2000, 20'000);
  for (std::int64_t round = 0; round < rounds && !HasFatalFailure(); ++round) {
    const std::string text = mutate(seeds[random() % seeds.size()], random);
    readAsAll(text);
    RunIdentity::parse(text);
  }
}

/// What a rank 0 that knows `token` sends behind its challenge to those who connect and send
/// `frame` of that challenge.
std::string answerOf(const Address &address,
                     const std::function<std::string(const std::string &challenge)> &frame) {
  std::string reason, challenge;
  Socket socket = connectTo(address, 5, reason);
  for (int tries = 0; !socket && tries < 500; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    socket = connectTo(address, 5, reason);
  }
  if (!receiveFrame(socket, FrameKind::Challenge, kNonceBytes, 100, challenge))
    return "no challenge";
  const std::string sent = frame(std::string(*openFrame(challenge, "", "")));
  socket.sendAll(sent.data(), sent.size(), 5);
  std::string got;
  for (char byte; socket.receiveAll(&byte, 1, 100);)
    got += byte;
  return got;
}

// A proof is what guesses of the token are tried against, so nobody gets one who has not proved it
// first: whatever is sent, all of the answer is the same for every token.
TEST(TcpMessages, RankZeroProvesNothingWithoutTheToken) {
  const auto joins = [](std::string key, std::string_view payload) {
    return [=, text = std::string(payload)](const std::string &challenge) {
      return sealFrame(FrameKind::Join, text, key, challenge);
    };
  };
  const JoinRequest self = someRequest();
  std::string last;
  const std::vector<std::function<std::string(const std::string &)>> strangers = {
      joins("", self.encode()),
      joins("a guess of the token", self.encode()),
      joins("", ""),
      joins("", std::string(JoinRequest::kMax, 'x')),
      joins("", std::string(JoinRequest::kMax + 1, 'x')),
      [](const std::string &challenge) {
        return sealFrame(FrameKind::Answer, someAnswer(2).encode(), "", challenge);
      },
      [](const std::string &) {
        return sealFrame(FrameKind::Connect, ConnectRequest{1, 2, 1, 0}.encode(), "",
                         "between ranks");
      },
      // The challenge, back, as the nonce that rank 0 would answer to; and the proof of another
      // connection.
      [&](const std::string &challenge) {
        JoinRequest request = self;
        request.nonce = challenge;
        return last =
                   sealFrame(FrameKind::Join, request.encode(), "a guess of the token", challenge);
      },
      [&](const std::string &) { return last; },
  };
  std::vector<std::vector<std::string>> answers;
  for (const char *token : {"0123456789abcdef", "fedcba9876543210"}) {
    const int port = freePort();
    const RendezvousPlace place{"127.0.0.1", port, "test", token, true};
    std::thread first([&] {
      JoinRequest zero = self;
      zero.rank = 0;
      rendezvous(place, zero, 300);
    });
    std::string reason;
    answers.emplace_back();
    for (const auto &stranger : strangers)
      answers.back().push_back(answerOf(resolve("127.0.0.1", port, reason).at(0), stranger));
    rendezvous(place, self, 300); // or rank 0 would wait
    first.join();
  }
  for (std::size_t i = 0; i < strangers.size(); ++i) {
    EXPECT_EQ(answers[0][i], answers[1][i]) << i;
    EXPECT_TRUE(answers[0][i].empty() ||
                answers[0][i] == sealFrame(FrameKind::Rejected, "", "", ""))
        << i;
  }
}

/// Rank 1 of a job of two with rank 0 on a thread, while others say what they like.
TEST(TcpMessages, StrangersDoNotKeepRanksApart) {
  std::mt19937 random(7);
  const int port = freePort();
  RendezvousPlace place{"127.0.0.1", port, "test", "token", true};
  JoinRequest self = someRequest();
  self.nonce.clear();
  std::vector<Rendezvous> met(2);
  std::thread first([&] {
    JoinRequest zero = self;
    zero.rank = 0;
    met[0] = rendezvous(place, zero, 300);
  });
  std::string reason;
  const Address address = resolve("127.0.0.1", port, reason).at(0);
  std::vector<Socket> held;
  const auto strangers = [&](const Address &at, FrameKind kind, const std::string &payload) {
    for (int i = 0; i < 200; ++i) {
      Socket socket = connectTo(at, 5, reason);
      for (int tries = 0; !socket && tries < 100; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        socket = connectTo(at, 5, reason);
      }
      const std::string key = i % 2 ? "token" : "other";
      const std::string text = mutate(sealFrame(kind, payload, key, "context"), random);
      socket.sendAll(text.data(), text.size(), 1);
      if (i % 10 == 0)
        held.push_back(std::move(socket));
    }
  };
  strangers(address, FrameKind::Join, self.encode());
  met[1] = rendezvous(place, self, 300);
  first.join();
  EXPECT_EQ(met[1].peers.size(), 2u);
  EXPECT_EQ(met[0].nonce, met[1].nonce);

  // And while the job runs: at the ports for data, and over the connection with rank 0.
  Address own = met[0].peers[0].address;
  if (own.host.empty())
    own.host = address.host;
  met[0].peers[1].address.host = address.host;
  Failure failures[2];
  ControlChannel one(std::move(met[1]), 100);
  Socket line;
  {
    ControlChannel zero(std::move(met[0]), 100);
    zero.start(failures[0]);
    one.start(failures[1]);
    strangers(own, FrameKind::Connect, ConnectRequest{1, 2, 1, 0}.encode());
    std::thread other([&] { line = one.join(0, 9, [] {}, 100); });
    EXPECT_TRUE(zero.join(1, 9, [] {}, 100));
    other.join();
    EXPECT_TRUE(line);
    EXPECT_FALSE(failures[0].raised() || failures[1].raised());
  }
}

// A rank 0 that says what it should not: the connection counts as ended.
TEST(TcpMessages, AConnectionWithMalformedDataIsClosed) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const Socket listener = listenOn(0);
    std::string reason;
    Rendezvous met;
    met.rank = 1;
    met.peers.resize(2);
    met.peers[0].host = "node0";
    met.connections.push_back(
        connectTo(resolve("127.0.0.1", portOf(listener), reason).at(0), 5, reason));
    met.listener = listenOn(0);
    Socket peer;
    while (!(peer = acceptFrom(listener)))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Failure failure;
    {
      ControlChannel control(std::move(met), 20);
      control.start(failure);
      std::string text(8 + random() % 5000, '\0');
      for (char &c : text)
        c = static_cast<char>(random());
      text[3] = 1; // no kind of message
      peer.sendAll(text.data(), text.size(), 1);
      for (int i = 0; i < 60'000 && !failure.raised(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ASSERT_TRUE(failure.raised());
    EXPECT_NE(failure.error().describe().find("rank 0: exited unexpectedly on 'node0'"),
              std::string::npos);
  }
}

} // namespace

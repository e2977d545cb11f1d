//===- data.cpp - images to try the model on ------------------------------===//
//
//   data FOLDER     leaves FOLDER/train.safetensors and FOLDER/validation.safetensors
//
// Ten fixed patterns of 8 x 8 pixels under noise. A data file is a safetensors file with a tensor
// for each input of the model, whose first dimension counts samples.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

static bool write(const std::string &path, int samples, unsigned seed) {
  std::mt19937 pattern(7), noise(seed);
  std::normal_distribution<float> normal;
  std::vector<float> patterns(10 * 64), images;
  for (float &pixel : patterns)
    pixel = normal(pattern);
  std::vector<std::int32_t> labels;
  for (int sample = 0; sample < samples; ++sample) {
    labels.push_back(static_cast<std::int32_t>(noise() % 10));
    for (int i = 0; i < 64; ++i)
      images.push_back(patterns[labels.back() * 64 + i] + 0.5F * normal(noise));
  }
  const std::string count = std::to_string(samples), middle = std::to_string(samples * 64 * 4),
                    end = std::to_string(samples * 65 * 4);
  std::string header = R"({"x":{"dtype":"F32","shape":[)" + count + R"(,64],"data_offsets":[0,)" +
                       middle + R"(]},"label":{"dtype":"I32","shape":[)" + count +
                       R"(],"data_offsets":[)" + middle + "," + end + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char *>(&length), sizeof(length));
  file << header;
  file.write(reinterpret_cast<const char *>(images.data()),
             static_cast<std::streamsize>(images.size() * sizeof(float)));
  file.write(reinterpret_cast<const char *>(labels.data()),
             static_cast<std::streamsize>(labels.size() * sizeof(labels[0])));
  return bool(file.flush());
}

int main(int argc, char **argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  return write(folder + "/train.safetensors", 1000, 1) &&
                 write(folder + "/validation.safetensors", 190, 2)
             ? 0
             : 1;
}

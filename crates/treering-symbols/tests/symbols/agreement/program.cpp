// Templates, lambdas, methods and namespaces, all of which lend themselves to inlining.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace shapes {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

template <typename Number>
struct Square : Shape {
    Number side;
    explicit Square(Number side) : side(side) {}
    double area() const override { return static_cast<double>(side * side); }
};

namespace {
struct Circle : Shape {
    double radius;
    explicit Circle(double radius) : radius(radius) {}
    double area() const override;
};

double Circle::area() const
{
    return 3.14159 * radius * radius;
}
} // namespace

std::vector<std::unique_ptr<Shape>> make(int count)
{
    std::vector<std::unique_ptr<Shape>> all;
    for (int i = 0; i < count; i++) {
        if (i % 3 == 0)
            all.push_back(std::make_unique<Circle>(i));
        else if (i % 3 == 1)
            all.push_back(std::make_unique<Square<int>>(i));
        else
            all.push_back(std::make_unique<Square<float>>(i));
    }
    return all;
}
} // namespace shapes

template <typename Container, typename Function>
__attribute__((noinline)) double total(const Container &container, Function function)
{
    double sum = 0;
    for (const auto &item : container)
        sum += function(item);
    return sum;
}

int main(int argc, char **argv)
{
    auto all = shapes::make(100 * argc);
    int limit = argc * 50;
    double areas = total(all, [limit](const auto &shape) {
        double area = shape->area();
        return area > limit ? area : 0.0;
    });
    std::map<std::string, int> words;
    for (int i = 0; i < argc; i++)
        for (const char *c = argv[i]; *c; c++)
            words[std::string(3, *c)] += [&](int by) { return by * i + limit; }(*c);
    std::map<int, std::string> names;
    for (const auto &[word, count] : words)
        names[count] = word;
    std::vector<int> numbers(1000);
    std::iota(numbers.begin(), numbers.end(), argc);
    std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a % 17 < b % 17; });
    try {
        std::printf("%f %zu %d\n", areas, names.size(), numbers.at(static_cast<size_t>(argc)));
    } catch (const std::out_of_range &error) {
        std::puts(error.what());
        return 1;
    }
    return 0;
}

// Times of the CBS interface: spans of time, and user, system and wall time together.
#ifndef TREERING_CBS_BENCH_INTERNAL_TIME_HH
#define TREERING_CBS_BENCH_INTERNAL_TIME_HH

#include <cmath>
#include <iomanip>
#include <ostream>

#include <sys/resource.h>
#include <sys/time.h>

namespace timer {

/// Units in which a time is printed; by default the largest in which it is at least 1.
enum time_unit { TIME_DEFAULT, TIME_H, TIME_M, TIME_S, TIME_MS };

/// A span of time, to the microsecond. tv_usec is from 0 to 999999, also in a negative span.
struct TimeVal {
    long tv_sec;
    long tv_usec;

    TimeVal() : tv_sec(0), tv_usec(0) {}
    TimeVal(int seconds) : tv_sec(seconds), tv_usec(0) {}
    TimeVal(double seconds) : tv_sec(0), tv_usec(0) { set_us(seconds * 1e6); }
    TimeVal(const timeval &time) : tv_sec(time.tv_sec), tv_usec(time.tv_usec) {}

    double us() const { return double(tv_sec) * 1e6 + double(tv_usec); }
    double ms() const { return us() / 1e3; }
    double s() const { return us() / 1e6; }
    double m() const { return s() / 60; }
    double h() const { return s() / 3600; }
    /// Whole milliseconds, rounded down.
    long to_ms() const { return tv_sec * 1000 + tv_usec / 1000; }

    void clear() { *this = TimeVal(); }
    void set(const timeval &time) { *this = TimeVal(time); }

    TimeVal &operator+=(const TimeVal &other)
    {
        tv_sec += other.tv_sec;
        tv_usec += other.tv_usec;
        return carry();
    }
    TimeVal &operator-=(const TimeVal &other)
    {
        tv_sec -= other.tv_sec;
        tv_usec -= other.tv_usec;
        return carry();
    }
    TimeVal &operator/=(double divisor)
    {
        set_us(us() / divisor);
        return *this;
    }
    TimeVal operator+(const TimeVal &other) const { return TimeVal(*this) += other; }
    TimeVal operator-(const TimeVal &other) const { return TimeVal(*this) -= other; }
    TimeVal operator/(double divisor) const { return TimeVal(*this) /= divisor; }
    bool operator==(const TimeVal &other) const { return tv_sec == other.tv_sec && tv_usec == other.tv_usec; }
    bool operator<(const TimeVal &other) const { return us() < other.us(); }
    bool operator>(const TimeVal &other) const { return other < *this; }

    /// Writes the time with three decimals and its unit.
    std::ostream &print(std::ostream &o, time_unit unit = TIME_DEFAULT) const
    {
        if (unit == TIME_DEFAULT)
            unit = h() >= 1 ? TIME_H : m() >= 1 ? TIME_M : s() >= 1 ? TIME_S : TIME_MS;
        const double value = unit == TIME_H ? h() : unit == TIME_M ? m() : unit == TIME_S ? s() : ms();
        const char *name = unit == TIME_H ? "h" : unit == TIME_M ? "m" : unit == TIME_S ? "s" : "ms";
        const std::ios_base::fmtflags flags = o.flags();
        const std::streamsize precision = o.precision();
        o << std::fixed << std::setprecision(3) << value << name;
        o.flags(flags);
        o.precision(precision);
        return o;
    }

private:
    void set_us(double microseconds)
    {
        tv_sec = long(std::floor(microseconds / 1e6));
        tv_usec = long(microseconds - double(tv_sec) * 1e6);
    }

    TimeVal &carry()
    {
        tv_sec += tv_usec / 1000000;
        tv_usec %= 1000000;
        if (tv_usec < 0) {
            tv_usec += 1000000;
            --tv_sec;
        }
        return *this;
    }
};

inline std::ostream &operator<<(std::ostream &o, const TimeVal &time) { return time.print(o); }

/// Writes a time in a unit.
inline std::ostream &print_time(std::ostream &o, TimeVal &time, time_unit unit = TIME_DEFAULT)
{
    return time.print(o, unit);
}

/// CPU time of the process and of its ended children, and wall time.
struct TimeStamp {
    TimeVal user, system, children_user, children_system, wall;

    /// Reads the clocks, which takes about a microsecond.
    static TimeStamp now()
    {
        rusage self, children;
        timeval wall;
        getrusage(RUSAGE_SELF, &self);
        getrusage(RUSAGE_CHILDREN, &children);
        gettimeofday(&wall, 0);
        TimeStamp stamp;
        stamp.user.set(self.ru_utime);
        stamp.system.set(self.ru_stime);
        stamp.children_user.set(children.ru_utime);
        stamp.children_system.set(children.ru_stime);
        stamp.wall.set(wall);
        return stamp;
    }

    TimeVal cpu() const { return user + system + children_user + children_system; }

    TimeStamp &operator+=(const TimeStamp &other)
    {
        user += other.user;
        system += other.system;
        children_user += other.children_user;
        children_system += other.children_system;
        wall += other.wall;
        return *this;
    }
    TimeStamp &operator-=(const TimeStamp &other)
    {
        user -= other.user;
        system -= other.system;
        children_user -= other.children_user;
        children_system -= other.children_system;
        wall -= other.wall;
        return *this;
    }
    TimeStamp &operator/=(double divisor)
    {
        user /= divisor;
        system /= divisor;
        children_user /= divisor;
        children_system /= divisor;
        wall /= divisor;
        return *this;
    }
    TimeStamp operator-(const TimeStamp &other) const { return TimeStamp(*this) -= other; }
};

} // namespace timer

#endif

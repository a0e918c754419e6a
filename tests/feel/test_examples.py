"""Expressions with their values, written down from the specification: DMN 1.5, chapter 10, one by one."""

from __future__ import annotations

from typing import Final

import pytest

from holdfast import feel
from tests.feel.tck import is_same

EXAMPLES: Final = r"""
1 - 2 - 3 | -4
2 ** -1 | 0.5
-2 ** 2 | 4
4 / 2 / 2 | 1
1 + 2 = 3 | true
"a" < "b" | true
"10" < "9" | true
1 = 1.0 | true
[1,2] = [1,2.0] | true
{a:1} = {a:1.0} | true
{a:1,b:2} = {b:2,a:1} | true
[1..2] = [1..2] | true
[1..2] = (1..2) | false
null < 1 | null
null = 1 | false
null != 1 | true
1 != "a" | null
true and "x" | null
false and "x" | false
true or "x" | true
not("x") | null
if "x" then 1 else 2 | 2
for i in [] return i | []
for i in 1..0 return i | [1,0]
for i in -1..1 return i | [-1,0,1]
for i in [1..3] return i | [1,2,3]
for i in (1..3) return i | [2]
for x in [1,2], y in [x, x*10] return y | [1,10,2,20]
some x in [] satisfies true | false
every x in [] satisfies false | true
some x in [1,2], y in [2,3] satisfies x = y | true
every x in [1,null] satisfies x = 1 | false
1 between 1 and 1 | true
1 in (1..2] | false
1 in (0, 2) | false
1 in ([0..2], 5) | true
1 in [0, 1] | true
[1] in [[1]] | true
"a" in ("a", "b") | true
null in (null) | true
[1,2,3][-1] | 3
[1,2,3][4] | null
[1,2,3][0] | null
[1,2,3][1.5] | null
[{a:1},{a:2},{b:3}].a | [1,2,null]
[{a:1},{a:2}][a>1] | [{a:2}]
[{item:1},{item:2}][item = 2] | [{item: 2}]
1[1] | 1
1[true] | [1]
null[1] | null
[1,2,3][item > 1][1] | 2
[[1,2],[3]][1] | [1,2]
{a: 1, b: a + 1}.b | 2
{a: {b: [1,2]}}.a.b[2] | 2
{"a b": 1}.a b | 1
{a: 1}.c | null
{} = {} | true
[] = [] | true
[] = null | false
substring("foobar", 3) | "obar"
substring("foobar", 3, 3) | "oba"
substring("foobar", -2, 1) | "a"
substring("\U01F40Eab", 2) | "ab"
string length("foo") | 3
substring before("foobar", "xyz") | ""
substring after("", "a") | ""
substring after("foobar", "") | "foobar"
replace("abcd", "(ab)|(a)", "[1=$1][2=$2]") | "[1=ab][2=]cd"
contains("foobar", "of") | false
matches("foobar", "^fo*b") | true
split("John Doe", "\\s") | ["John", "Doe"]
split("a;b;c;;", ";") | ["a","b","c","",""]
string join(["a","b","c"], "_and_") | "a_and_b_and_c"
string join(["a",null,"c"]) | "ac"
list contains([1,2,3], 2) | true
count([1,2,[3]]) | 3
min("a","b") | "a"
max([]) | null
sum([]) | null
mean([1,null]) | null
all([false,null,true]) | false
any([false,null]) | null
all([]) | true
any([]) | false
all(true, null) | null
sublist([4,5,6], 1, 2) | [4,5]
append([1], 2, 3) | [1,2,3]
concatenate([1,2],[3]) | [1,2,3]
insert before([1,3],1,2) | [2,1,3]
remove([1,2,3], 2) | [1,3]
reverse([1,2,3]) | [3,2,1]
index of([1,2,3,2],2) | [2,4]
union([1,2],[2,3]) | [1,2,3]
distinct values([1,2,3,2,1]) | [1,2,3]
flatten([[1,2],[[3]], 4]) | [1,2,3,4]
product([2,3,4]) | 24
median([6,1,2,3]) | 2.5
stddev(2,4,7,5) | 2.081665999466132735282297706979931
mode([6,1,9,6,1]) | [1,6]
mode([]) | []
median([]) | null
decimal(1/3, 2) | .33
decimal(1.5, 0) | 2
decimal(2.5, 0) | 2
floor(-1.56, 1) | -1.6
ceiling(-1.56, 1) | -1.5
round up(-5.5, 0) | -6
round half down(-5.5, 0) | -5
abs(@"-PT5H") | @"PT5H"
modulo(-12, 5) | 3
modulo(12, -5) | -3
modulo(10.1, 4.5) | 1.1
sqrt(-1) | null
is(@"23:00:50z", @"23:00:50+00:00") | true
is(@"23:00:50z", @"23:00:50") | false
date("2012-12-25") + duration("P1D") | @"2012-12-26"
date("2012-12-25") - date("2012-12-24") | @"P1D"
@"2012-12-25T00:00:00Z" - @"P1Y" | @"2011-12-25T00:00:00Z"
@"10:00:00" + @"PT1H" | @"11:00:00"
@"P1Y" + @"P1D" | null
@"P1Y" * 2 | @"P2Y"
@"P2Y" / 2 | @"P1Y"
@"P2Y" / @"P1Y" | 2
@"P1D" / @"PT12H" | 2
@"P1D" > @"PT23H" | true
@"P1Y" = @"P12M" | true
@"P1Y" = @"P365D" | null
date("2012-12-25").day | 25
@"P1Y2M".months | 2
@"P1DT2H".days | 1
@"2012-12-25T10:00:00+02:00".time offset | @"PT2H"
@"2012-12-25T10:00:00@Europe/Paris".timezone | "Europe/Paris"
date and time("2012-12-24T23:59:00") < date and time("2012-12-25T00:00:00") | true
@"2024-02-30" | null
years and months duration(@"2011-12-22", @"2013-08-24") | @"P1Y8M"
day of week(@"2019-09-17") | "Tuesday"
week of year(@"2003-12-29") | 1
get value({key1: "v"}, "key1") | "v"
get entries({a:1}) | [{key:"a", value:1}]
context put({x:1}, "y", 2) | {x:1,y:2}
context merge([{x:1},{y:2}]) | {x:1,y:2}
sort([3,1,2], function(x,y) x < y) | [1,2,3]
(function(a,b) a+b)(1,2) | 3
{f: function(x) x * 2, r: f(2)}.r | 4
{f: function(x: number) x, r: f("a")}.r | null
1 instance of number | true
2 * 3 instance of number | true
"a" + "b" instance of string | true
-(1) instance of number | true
@"2024-01-02" - @"2024-01-01" instance of days and time duration | true
true = 1 instance of number | true
1 instance of number and 1 + 1 instance of string | false
1 instance of number instance of boolean | true
null instance of number | false
[1,"a"] instance of list<number> | false
[1,null] instance of list<number> | true
{a:1} instance of context<a: number, b: string> | false
@"P1D" instance of days and time duration | true
(function(x) x) instance of function<Any> -> Any | true
[1..2] instance of range<number> | true
before(1, 10) | true
before([1..10), 10) | true
overlaps([1..5], (5..8]) | false
meets([1..5], [5..10]) | true
includes([1..10], [4..6]) | true
during((1..10), [1..10]) | true
starts([1..5], [1..10]) | true
finishes((5..10], [1..10]) | true
coincides([1..5], [1..5]) | true
range("[18..21)") | [18..21)
number("1 000,0", " ", ",") | 1000
number("abc") | null
string(1.1) | "1.1"
string(null) | null
string([1,"a",null]) | "[1, \"a\", null]"
string({a: "x"}) | "{a: \"x\"}"
string(@"P1D") | "P1D"
string(true) | "true"
time("23:59:00z") = time("23:59:00+00:00") | true
time(23, 59, 0, @"-PT5H") | @"23:59:00-05:00"
date(2024, 2, 30) | null
date("2024-2-3") | null
list replace([2,4,7,8], 3, 6) | [2,4,6,8]
list replace([2,4,7,8], function(item, newItem) item < newItem, 5) | [5,5,7,8]
[1,2,3][item >= 2 and item < 3] | [2]
{a: [1,2,3]}.a[item > 1] | [2,3]
for i in 0..4 return if i = 0 then 1 else i * partial[-1] | [1,1,2,6,24]
if true then if false then 1 else 2 else 3 | 2
"a" + "b" + "c" | "abc"
"\n\t\"\\" | "\n\t\"\\"
"\u0041" | "A"
1e2 | 100
[1 .. 3] = [1..3] | true
10 in (>= 5) and true | true
(< 5) = (< 5) | true
4 in (< 5) | true
[1,2,3,4][(> 2)] | [3,4]
count([1,2,3][item > 5]) | 0
null.a | null
not(null) | null
not(not(true)) | true
- (1 + 2) | -3
-@"P1D" | @"-P1D"
@"P1D" - @"P2D" | @"-P1D"
@"2012-12-25" < @"2012-12-26" | true
@"2012-12-25" = @"2012-12-25T00:00:00Z" | null
{a: function(x) x + 1}.a(2) | 3
[function(x) x][1](5) | 5
(if true then abs else floor)(-1) | 1
"""


@pytest.mark.parametrize("line", EXAMPLES.strip().splitlines())
def test_expression_has_the_value_of_the_specification(line: str) -> None:
    text, _, value = line.rpartition(" | ")

    assert is_same(feel.evaluate(text), feel.evaluate(value))


def test_there_are_many_examples() -> None:
    assert len(EXAMPLES.strip().splitlines()) >= 200

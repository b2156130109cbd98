package corpus

import "strings"

// A template line has $i for an identifier, $n for a number and $s for the inside of a
// string or comment.
func templates() map[string][]string {
	return map[string][]string{
		"go":         {"func (c *$i) $i(ctx context.Context) error {", "if err != nil {", "return fmt.Errorf(\"$s: %w\", err)", "}", "$i := make([]byte, 0, $n)", "for i := range $n {", "// $s", "$i <- struct{}{}", "go func() { defer $i.Unlock() }()", "type $i[T any] interface{ ~int | ~string }", "x &^= 0x$n << $n", "\t\"$i/$i\""},
		"python":     {"def $i(self, *args, **kwargs) -> None:", "if __name__ == '__main__':", "return [$i for $i in range($n)]", "# $s", "\"\"\"$s\"\"\"", "print(f'{$i!r:>10} $s')", "@$i.setter", "lambda x: x ** $n", "raise $i('$s') from None", "self.$i = $i or {}", "async with $i() as $i:"},
		"typescript": {"export const $i = async ($i: string): Promise<void> => {", "});", "import { $i } from './$i';", "const $i = `${$i} $s`;", "if ($i?.$i !== undefined && !$i) {", "}", "// $s", "/* $s */", "return <$i key={$n} className=\"$s\" />;", "$i!.push(...$i);", "type $i = keyof typeof $i | null;"},
		"java":       {"public static void $i(final List<? extends $i> $i) throws IOException {", "@Override", "System.out.println(\"$s\");", "private int $i = $n;", "}", "/** $s */", "import java.util.$i;", "$i.stream().map($i::$i).collect(toList());", "throw new $i(\"$s\", $n);"},
		"c":          {"#include <$i.h>", "#define $i(x) ((x) >> $n)", "int main(int argc, char **argv) {", "for (size_t i = 0; i < $n; i++) {", "printf(\"%s\\n\", $i->$i);", "/* $s */", "}", "struct $i { unsigned $i : $n; };", "free($i); $i = NULL;", "while (*p++ = *q++);", "return -$n;"},
		"rust":       {"fn $i<'a, T: Clone>(&'a self) -> Result<T, $i> {", "let mut $i = vec![0u8; $n];", "match $i { Some(x) => x?, None => return Err($i::$i) }", "#[derive(Debug, Clone)]", "// $s", "println!(\"{$i:?} $s\");", "}", "unsafe { *$i.add($n) }", "impl $i for $i {}", "use $i::{$i, $i};", "let r#$i = 1_000_$n;"},
		"ruby":       {"def $i($i = nil)", "end", "puts \"#{$i} $s\"", "$i.each { |$i| $i << $n }", "# $s", "attr_reader :$i", "@$i ||= %w[$i $i]", "raise $i, '$s' unless $i?", "require '$i'"},
		"sql":        {"SELECT $i, COUNT(*) FROM $i", "WHERE $i = '$s' AND $i >= $n", "LEFT JOIN $i ON $i.$i = $i.$i", "GROUP BY 1 ORDER BY 2 DESC LIMIT $n;", "-- $s", "INSERT INTO $i VALUES ($n, '$s');", "CREATE TABLE $i ($i BIGINT NOT NULL);", "UPDATE $i SET $i = $i + $n"},
		"shell":      {"#!/usr/bin/env bash", "set -euo pipefail", "for $i in \"${$i[@]}\"; do", "done", "echo \"$s\" >&2", "if [ -z \"${$i:-}\" ]; then exit $n; fi", "# $s", "$i | grep -E '$s' | awk '{print $$n}' > /tmp/$i.log 2>&1", "cd ./$i/$i && make -j$n", "$i=$((1 + $n))"},
		"html":       {"<div class=\"$i-$i\" id='$i'>", "</div>", "<p>$s</p>", "<!-- $s -->", "&nbsp;&#$n;", "<a href=\"/$i/$i?x=$n&y=$s\">$s</a>", ".$i > #$i:hover { margin: $npx auto; }", "<script>$i();</script>", "<br/>", "@media (max-width: $nem) {"},
		"haskell":    {"$i :: Monad m => Int -> m ($i a)", "$i x' = x' >>= \\y -> return $ y ++ \"$s\"", "  where $i = $n", "-- $s", "module $i.$i (f', g'') where", "data $i = $i { $i :: !Int } deriving (Eq, Show)"},
		"yaml":       {"$i:", "- name: $i", "image: $i/$i:v$n", "# $s", "value: \"$s\"", "$i: &$i |", "replicas: $n", "---", "enabled: true"},
	}
}

func codeKinds() []kind {
	var kinds []kind
	for _, name := range []string{"go", "python", "typescript", "java", "c", "rust", "ruby", "sql", "shell", "html", "haskell", "yaml"} {
		lines := templates()[name]
		kinds = append(kinds, kind{name, func(s *source) string { return s.codeLine(lines) }})
	}
	return kinds
}

func (s *source) codeLine(lines []string) string {
	depth := s.IntN(5)
	indent := strings.Repeat([...]string{"\t", "    ", "  "}[s.IntN(3)], depth)
	return indent + s.fill(s.pick(lines)) + s.pick(lineEnds)
}

var lineEnds = []string{"\n", "\n", "\n", "\n", "\n\n", "\r\n", " \n", "\n\n\n", "\t\n", " "}

// fill puts something into the places of a template.
func (s *source) fill(template string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(template, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch {
		case strings.HasPrefix(after, "i"):
			b.WriteString(s.identifier())
		case strings.HasPrefix(after, "n"):
			b.WriteString(s.digits())
		case strings.HasPrefix(after, "s"):
			b.WriteString(s.phrase())
		default:
			b.WriteString("$")
			template = after
			continue
		}
		template = after[1:]
	}
}

var parts = strings.Fields("get set user id HTTP server name new index count x i tmp is valid value URL parse token budget key json map ID of to request handler v2 größe データ naïve Ωmega")

// identifier is camelCase, snake_case, SCREAMING_CASE or kebab-case.
func (s *source) identifier() string {
	style := s.IntN(5)
	var b strings.Builder
	for i := range 1 + s.IntN(4) {
		part := s.pick(parts)
		switch {
		case style == 0 && i > 0, style == 1:
			part = capitalized(part)
		case style == 2 && i > 0:
			part = "_" + part
		case style == 3:
			part = strings.ToUpper(part) + "_"
		case style == 4 && i > 0:
			part = "-" + part
		}
		b.WriteString(part)
	}
	return b.String()
}

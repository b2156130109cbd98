package corpus

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// language is what prose is made of. Of a script without spaces the separator is empty.
type language struct {
	name      string
	words     []string
	separator string
	stops     []string
	letters   *unicode.RangeTable
}

var western = []string{".", ",", "?", "!", ";", ":", "...", ".\n\n", "\n", ".\r\n", " –", ")", "\"", "/"}

var eastern = []string{"。", "、", "，", "！", "？", "」", "「", "：", "\n", "。\n\n", "　", "…", "（", "）"}

func languages() []language {
	return []language{
		{"english", strings.Fields("the gateway counts every prompt before dispatch and holds Budget of an organization internationalization don't we're I'll rhythm strengths"), " ", western, unicode.Latin},
		{"german", strings.Fields("Die Größe des Überziehungskredits Straßenbahnhaltestelle wäre fünf Öl Maß und ÄRGER daß ẞ Donaudampfschifffahrt"), " ", western, unicode.Latin},
		{"french", strings.Fields("l'été où garçon œuvre naïve élève qu'elle AUJOURD'HUI d'accord cœur Noël ÉCOLE"), " ", []string{" !", " ?", " ;", "\u00a0:", "\u202f!", "…", "» ", "« ", "\n"}, unicode.Latin},
		{"vietnamese", strings.Fields("cổng đếm số lượng Trước khi chuyển tiếp yêu cầu Việt Nam không được người"), " ", western, unicode.Latin},
		{"turkish", strings.Fields("İstanbul ışık DİYARBAKIR güzel ŞEKER çığ öğretmen değil ILIK"), " ", western, unicode.Latin},
		{"russian", strings.Fields("шлюз считает каждый Запрос перед отправкой и ДЕРЖИТ бюджет ещё подъезд"), " ", western, unicode.Cyrillic},
		{"greek", strings.Fields("η πύλη μετρά κάθε Αίτημα πριν ΤΟ ΣΤΕΊΛΕΙ ὁ ἄνθρωπος ᾳ ς Ὀδυσσεύς"), " ", western, unicode.Greek},
		{"armenian", strings.Fields("դարպասը հաշվում է ամեն Հարցում և ՊԱՀՈՒՄ բյուջեն"), " ", []string{"։", ",", "՞", "\n"}, unicode.Armenian},
		{"georgian", strings.Fields("კარიბჭე ითვლის ყოველ მოთხოვნას ᲒᲐᲒᲖᲐᲕᲜᲐᲛᲓᲔ Ⴀⴀ"), " ", western, unicode.Georgian},
		{"arabic", strings.Fields("البوابة تحسب كل طلب قبل الإرسال وَالْمِيزَانِيَّةُ ١٢٣٤ مـــرحبا"), " ", []string{"،", "؟", ".", "؛", "\n", "\u200f"}, unicode.Arabic},
		{"hebrew", strings.Fields("השער סופר כל בקשה לפני השליחה וְשׁוֹמֵר צה״ל"), " ", western, unicode.Hebrew},
		{"hindi", strings.Fields("गेटवे हर अनुरोध को भेजने से पहले गिनता है क्षत्रिय १२३ हिन्दी"), " ", []string{"।", ",", "?", "॥\n", "\u200d", "\u200c"}, unicode.Devanagari},
		{"bengali", strings.Fields("গেটওয়ে প্রতিটি অনুরোধ পাঠানোর আগে গণনা করে ১২৩"), " ", []string{"।", ",", "?", "\n"}, unicode.Bengali},
		{"tamil", strings.Fields("நுழைவாயில் ஒவ்வொரு கோரிக்கையையும் எண்ணுகிறது"), " ", western, unicode.Tamil},
		{"thai", strings.Fields("เกต เวย์ นับ ทุก คำ ขอ ก่อน ส่ง ที่ ๑๒๓ น้ำ"), "", []string{" ", "ๆ ", "\n", "ฯ", "\u200b"}, unicode.Thai},
		{"chinese", strings.Fields("网关 在 转发 之前 计算 每个 请求 的 令牌 龘 𠀀 預算 超過"), "", eastern, unicode.Han},
		{"japanese", strings.Fields("予算 を 超えた リクエスト は 拒否 されます ｶﾞ ゲートウェイ ー々 ッ が"), "", eastern, unicode.Hiragana},
		{"korean", strings.Fields("게이트웨이는 요청을 전달하기 전에 토큰 수를 계산합니다 ㅋㅋㅋ 각"), " ", western, unicode.Hangul},
		{"ethiopic", strings.Fields("በር ሁሉንም ጥያቄዎች ይቆጥራል ፩፪፫"), " ", []string{"።", "፣", "፡", "\n"}, unicode.Ethiopic},
	}
}

func proseKinds(of []language) []kind {
	var kinds []kind
	for _, l := range of {
		kinds = append(kinds, kind{l.name, l.unit})
	}
	return kinds
}

// unit is a word with what comes before the next.
func (l language) unit(s *source) string {
	word := s.pick(l.words)
	switch s.IntN(16) {
	case 0, 1:
		word = s.word(l.letters, 1+s.IntN(12))
	case 2:
		word = strings.ToUpper(word)
	case 3:
		word = capitalized(word)
	case 4:
		word += s.pick(l.words)
	case 5:
		word = s.digits()
	case 6:
		word += s.contraction()
	}
	if s.oneIn(6) {
		return word + s.pick(l.stops) + l.separator
	}
	if s.oneIn(40) {
		return word + s.space()
	}
	return word + l.separator
}

func capitalized(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}

// phrase is a few words, in English or in any language.
func (s *source) phrase() string {
	l := s.languages[0]
	if s.oneIn(3) {
		l = s.languages[s.IntN(len(s.languages))]
	}
	var b strings.Builder
	for range 1 + s.IntN(5) {
		b.WriteString(s.pick(l.words) + l.separator)
	}
	return strings.TrimSuffix(b.String(), l.separator)
}

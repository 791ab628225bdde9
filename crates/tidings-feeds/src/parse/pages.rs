//! Code pages of machines that are older than the web, each as the characters that its bytes are.

/// Names without signs between their letters, and the characters of all bytes, or of those beyond
/// ASCII.
const PAGES: &[(&str, &str)] = &[
    (
        "437",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "720",
        "\u{80}\u{81}éâ\u{84}à\u{86}çêëèïî\u{8d}\u{8e}\u{8f}\u{90}\u{651}\u{652}ô¤\u{640}ûù\
         \u{621}\u{622}\u{623}\u{624}£\u{625}\u{626}\u{627}\u{628}\u{629}\u{62a}\u{62b}\
         \u{62c}\u{62d}\u{62e}\u{62f}\u{630}\u{631}\u{632}\u{633}\u{634}\u{635}«»░▒▓│┤╡╢╖╕╣║╗\
         ╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\u{636}\u{637}\u{638}\u{639}\u{63a}\u{641}µ\
         \u{642}\u{643}\u{644}\u{645}\u{646}\u{647}\u{648}\u{649}\u{64a}≡\u{64b}\u{64c}\
         \u{64d}\u{64e}\u{64f}\u{650}≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "737",
        "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρσςτυφχψ░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀ωάέήϊίόύϋώΆΈΉΊΌΎΏ±≥≤ΪΫ÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "775 cspc775baltic",
        "ĆüéāäģåćłēŖŗīŹÄÅÉæÆōöĢ¢ŚśÖÜø£Ø×¤ĀĪóŻżź”¦©®¬½¼Ł«»░▒▓│┤ĄČĘĖ╣║╗╝ĮŠ┐└┴┬├─┼ŲŪ╚╔╩╦╠═╬Žąčęė\
         įšųūž┘┌█▄▌▐▀ÓßŌŃõÕµńĶķĻļņĒŅ’\u{ad}±“¾¶§÷„°∙·¹³²■\u{a0}",
    ),
    (
        "850 cspc850multilingual",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊË\
         ÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        "852 cspcp852",
        "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎË\
         ďŇÍÎě┘┌█▄ŢŮ▀ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}",
    ),
    (
        "855",
        "ђЂѓЃёЁєЄѕЅіІїЇјЈљЉњЊћЋќЌўЎџЏюЮъЪаАбБцЦдДеЕфФгГ«»░▒▓│┤хХиИ╣║╗╝йЙ┐└┴┬├─┼кК╚╔╩╦╠═╬¤лЛмМ\
         нНоОп┘┌█▄Пя▀ЯрРсСтТуУжЖвВьЬ№\u{ad}ыЫзЗшШэЭщЩчЧ§■\u{a0}",
    ),
    (
        "856",
        "\u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\
         \u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\
         \u{5e8}\u{5e9}\u{5ea}\u{fffd}£\u{fffd}×\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\
         \u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}®¬½¼\u{fffd}«»░▒▓│┤\u{fffd}\u{fffd}\u{fffd}©\
         ╣║╗╝¢¥┐└┴┬├─┼\u{fffd}\u{fffd}╚╔╩╦╠═╬¤\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\
         \u{fffd}\u{fffd}\u{fffd}\u{fffd}┘┌█▄¦\u{fffd}▀\u{fffd}\u{fffd}\u{fffd}\u{fffd}\
         \u{fffd}\u{fffd}µ\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}¯´\u{ad}±‗¾\
         ¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        "857",
        "ÇüéâäàåçêëèïîıÄÅÉæÆôöòûùİÖÜø£ØŞşáíóúñÑĞğ¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ºªÊË\
         È\u{fffd}ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµ\u{fffd}×ÚÛÙìÿ¯´\u{ad}±\u{fffd}¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        "858",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊË\
         È€ÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}",
    ),
    (
        "860",
        "ÇüéâãàÁçêÊèÍÔìÃÂÉÀÈôõòÚùÌÕÜ¢£Ù₧ÓáíóúñÑªº¿Ò¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "861 cpis",
        "ÇüéâäàåçêëèÐðÞÄÅÉæÆôöþûÝýÖÜø£Ø₧ƒáíóúÁÍÓÚ¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "862 cspc862latinhebrew",
        "\u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\u{5d6}\u{5d7}\u{5d8}\u{5d9}\u{5da}\u{5db}\
         \u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\u{5e1}\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\
         \u{5e8}\u{5e9}\u{5ea}¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘\
         ┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "863",
        "ÇüéâÂà¶çêëèïî‗À§ÉÈÊôËÏûù¤ÔÜ¢£ÙÛƒ¦´óú¨¸³¯Î⌐¬½¼¾«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "864",
        "°·∙√▒─│┼┤┬├┴┐┌└┘β∞φ±½¼≈«»\u{fef7}\u{fef8}\u{fffd}\u{fffd}\u{fefb}\u{fefc}\u{fffd}\
         \u{a0}\u{ad}\u{fe82}£¤\u{fe84}\u{fffd}\u{fffd}\u{fe8e}\u{fe8f}\u{fe95}\u{fe99}،\
         \u{fe9d}\u{fea1}\u{fea5}\u{660}\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}\u{667}\
         \u{668}\u{669}\u{fed1}\u{61b}\u{feb1}\u{feb5}\u{feb9}\u{61f}¢\u{fe80}\u{fe81}\
         \u{fe83}\u{fe85}\u{feca}\u{fe8b}\u{fe8d}\u{fe91}\u{fe93}\u{fe97}\u{fe9b}\u{fe9f}\
         \u{fea3}\u{fea7}\u{fea9}\u{feab}\u{fead}\u{feaf}\u{feb3}\u{feb7}\u{febb}\u{febf}\
         \u{fec1}\u{fec5}\u{fecb}\u{fecf}¦¬÷×\u{fec9}\u{640}\u{fed3}\u{fed7}\u{fedb}\u{fedf}\
         \u{fee3}\u{fee7}\u{feeb}\u{feed}\u{feef}\u{fef3}\u{febd}\u{fecc}\u{fece}\u{fecd}\
         \u{fee1}\u{fe7d}\u{651}\u{fee5}\u{fee9}\u{feec}\u{fef0}\u{fef2}\u{fed0}\u{fed5}\
         \u{fef5}\u{fef6}\u{fedd}\u{fed9}\u{fef1}■\u{fffd}",
    ),
    (
        "865",
        "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø₧ƒáíóúñÑªº¿⌐¬½¼¡«¤░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}",
    ),
    (
        "869",
        "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}Ά\u{fffd}·¬¦‘’Έ―ΉΊΪΌ\u{fffd}\u{fffd}\
         ΎΫ©Ώ²³ά£έήίϊΐόύΑΒΓΔΕΖΗ½ΘΙ«»░▒▓│┤ΚΛΜΝ╣║╗╝ΞΟ┐└┴┬├─┼ΠΡ╚╔╩╦╠═╬ΣΤΥΦΧΨΩαβγ┘┌█▄δε▀ζηθικλμνξ\
         οπρσςτ΄\u{ad}±υφχ§ψ΅°¨ωϋΰώ■\u{a0}",
    ),
    (
        "1125",
        "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙\
         ╘╒╓╫╪┘┌█▄▌▐▀рстуфхцчшщъыьэюяЁёҐґЄєІіЇї·√№¤■\u{a0}",
    ),
    (
        "macgreek xmacgreek",
        "Ä¹²É³ÖÜ΅àâä΄¨çéèêë£™îï•½‰ôö¦€ùûü†ΓΔΘΛΞΠß®©ΣΪ§≠°·Α±≤≥¥ΒΕΖΗΙΚΜΦΫΨΩάΝ¬ΟΡ≈Τ«»…\u{a0}ΥΧΆΈ\
         œ–―“”‘’÷ΉΊΌΎέήίόΏύαβψδεφγηιξκλμνοπώρστθωςχυζϊϋΐΰ\u{ad}",
    ),
    (
        "macturkish xmacturkish",
        "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒ\
         œ–—“”‘’÷◊ÿŸĞğİıŞş‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙ\u{f8a0}ˆ˜¯˘˙˚¸˝˛ˇ",
    ),
    (
        "maciceland macicelandic xmacicelandic",
        "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûüÝ°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒ\
         œ–—“”‘’÷◊ÿŸ⁄€ÐðÞþý·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ",
    ),
    (
        "maclatin2 maccentraleurope xmacce",
        "ÄĀāÉĄÖÜáąČäčĆćéŹźĎíďĒēĖóėôöõúĚěü†°Ę£§•¶ß®©™ę¨≠ģĮįĪ≤≥īĶ∂∑łĻļĽľĹĺŅņŃ¬√ńŇ∆«»…\u{a0}ňŐÕő\
         Ō–—“”‘’÷◊ōŔŕŘ‹›řŖŗŠ‚„šŚśÁŤťÍŽžŪÓÔūŮÚůŰűŲųÝýķŻŁżĢˇ",
    ),
    (
        "maccroatian xmaccroatian",
        "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®Š™´¨≠ŽØ∞±≤≥∆µ∂∑∏š∫ªºΩžø¿¡¬√ƒ≈Ć«Č…\u{a0}ÀÃÕŒ\
         œĐ—“”‘’÷◊\u{f8ff}©⁄€‹›Æ»–·‚„‰ÂćÁčÈÍÎÏÌÓÔđÒÚÛÙıˆ˜¯πË˚¸Êæˇ",
    ),
    (
        "macromanian macromania xmacromanian",
        "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ĂȘ∞±≤≥¥µ∂∑∏π∫ªºΩăș¿¡¬√ƒ≈∆«»…\u{a0}ÀÃÕŒ\
         œ–—“”‘’÷◊ÿŸ⁄€‹›Țț‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{f8ff}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ",
    ),
    (
        "hproman8 roman8 cshproman8 r8",
        "\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8a}\u{8b}\u{8c}\u{8d}\
         \u{8e}\u{8f}\u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9a}\u{9b}\
         \u{9c}\u{9d}\u{9e}\u{9f}\u{a0}ÀÂÈÊËÎÏ´ˋˆ¨˜ÙÛ₤¯Ýý°ÇçÑñ¡¿¤£¥§ƒ¢âêôûáéóúàèòùäëöüÅîØÆåíø\
         æÄìÖÜÉïßÔÁÃãÐðÍÌÓÒÕõŠšÚŸÿÞþ·µ¶¾—¼½ªº«■»±\u{fffd}",
    ),
    (
        "kz1048 rk1048 strk10482002 cskz1048",
        "ЂЃ‚ѓ„…†‡€‰Љ‹ЊҚҺЏђ‘’“”•–—\u{fffd}™љ›њқһџ\u{a0}ҰұӘ¤Ө¦§Ё©Ғ«¬\u{ad}®Ү°±Ііөµ¶·ё№ғ»әҢңүАБВ\
         ГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    ),
    (
        "ptcp154 csptcp154 pt154 cp154 cyrillicasian",
        "ҖҒӮғ„…ҶҮҲүҠӢҢҚҺҸҗ‘’“”•–—ҳҷҡӣңқһҹ\u{a0}ЎўЈӨҘҰ§Ё©Ә«¬ӯ®Ҝ°ұІіҙө¶·ё№ә»јҪҫҝАБВГДЕЖЗИЙКЛМНО\
         ПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюя",
    ),
    (
        "koi8t",
        "қғ‚Ғ„…†‡\u{fffd}‰ҳ‹ҲҷҶ\u{fffd}Қ‘’“”•–—\u{fffd}™\u{fffd}›\u{fffd}\u{fffd}\u{fffd}\
         \u{fffd}\u{fffd}ӯӮё¤ӣ¦§\u{fffd}\u{fffd}\u{fffd}«¬\u{ad}®\u{fffd}°±²Ё\u{fffd}Ӣ¶·\
         \u{fffd}№\u{fffd}»\u{fffd}\u{fffd}\u{fffd}©юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХ\
         ИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ",
    ),
    (
        "37 ebcdiccpus ebcdiccpca ebcdiccpnl ebcdiccpwt",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{a0}âäàáãåçñ¢.<(+|&éêëèíîïìß!$*);¬-/ÂÄÀÁ\
         ÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µ~stuvwxyz¡¿ÐÝÞ®^£¥·©§¶¼½\
         ¾[]¯¨´×{ABCDEFGHI\u{ad}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u{9f}",
    ),
    (
        "273",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{a0}â{àáãåçñÄ.<(+!&éêëèíîïì~Ü$*);^-/Â[ÀÁ\
         ÃÅÇÑö,%_>?øÉÊËÈÍÎÏÌ`:#§'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µßstuvwxyz¡¿ÐÝÞ®¢£¥·©@¶¼½\
         ¾¬|‾¨´×äABCDEFGHI\u{ad}ô¦òóõüJKLMNOPQR¹û}ùúÿÖ÷STUVWXYZ²Ô\\ÒÓÕ0123456789³Û]ÙÚ\u{9f}",
    ),
    (
        "424 ebcdiccphe",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{5d0}\u{5d1}\u{5d2}\u{5d3}\u{5d4}\u{5d5}\
         \u{5d6}\u{5d7}\u{5d8}¢.<(+|&\u{5d9}\u{5da}\u{5db}\u{5dc}\u{5dd}\u{5de}\u{5df}\u{5e0}\
         \u{5e1}!$*);¬-/\u{5e2}\u{5e3}\u{5e4}\u{5e5}\u{5e6}\u{5e7}\u{5e8}\u{5e9}¦,%_>?\
         \u{fffd}\u{5ea}\u{fffd}\u{fffd}\u{a0}\u{fffd}\u{fffd}\u{fffd}‗`:#@'=\"\u{fffd}abcdef\
         ghi«»\u{fffd}\u{fffd}\u{fffd}±°jklmnopqr\u{fffd}\u{fffd}\u{fffd}¸\u{fffd}¤µ~stuvwxyz\
         \u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}®^£¥·©§¶¼½¾[]¯¨´×{ABCDEFGHI\u{ad}\u{fffd}\
         \u{fffd}\u{fffd}\u{fffd}\u{fffd}}JKLMNOPQR¹\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\
         \\÷STUVWXYZ²\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}0123456789³\u{fffd}\u{fffd}\
         \u{fffd}\u{fffd}\u{9f}",
    ),
    (
        "500 ebcdiccpbe ebcdiccpch",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{a0}âäàáãåçñ[.<(+!&éêëèíîïìß]$*);^-/ÂÄÀÁ\
         ÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µ~stuvwxyz¡¿ÐÝÞ®¢£¥·©§¶¼½\
         ¾¬|¯¨´×{ABCDEFGHI\u{ad}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u{9f}",
    ),
    (
        "875",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}ΑΒΓΔΕΖΗΘΙ[.<(+!&ΚΛΜΝΞΟΠΡΣ]$*);^-/ΤΥΦΧΨΩΪΫ|\
         ,%_>?¨ΆΈΉ\u{a0}ΊΌΎΏ`:#@'=\"΅abcdefghiαβγδεζ°jklmnopqrηθικλμ´~stuvwxyzνξοπρσ£άέήϊίόύϋ\
         ώςτυφχψ{ABCDEFGHI\u{ad}ωΐΰ‘―}JKLMNOPQR±½\u{1a}\u{387}’¦\\\u{1a}STUVWXYZ²§\u{1a}\u{1a}«¬012\
         3456789³©\u{1a}\u{1a}»\u{9f}",
    ),
    (
        "1026",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{a0}âäàáãå{ñÇ.<(+!&éêëèíîïìßĞİ*);^-/ÂÄÀÁ\
         ÃÅ[Ñş,%_>?øÉÊËÈÍÎÏÌı:ÖŞ'=ÜØabcdefghi«»}`¦±°jklmnopqrªºæ¸Æ¤µöstuvwxyz¡¿]$@®¢£¥·©§¶¼½¾\
         ¬|¯¨´×çABCDEFGHI\u{ad}ô~òóõğJKLMNOPQR¹û\\ùúÿü÷STUVWXYZ²Ô#ÒÓÕ0123456789³Û\"ÙÚ\u{9f}",
    ),
    (
        "1140",
        "\u{0}\u{1}\u{2}\u{3}\u{9c}\t\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\r\u{e}\u{f}\
         \u{10}\u{11}\u{12}\u{13}\u{9d}\n\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\
         \u{1e}\u{1f}\u{80}\u{81}\u{82}\u{83}\u{84}\n\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\
         \u{8c}\u{5}\u{6}\u{7}\u{90}\u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\
         \u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a}\u{20}\u{a0}âäàáãåçñ¢.<(+|&éêëèíîïìß!$*);¬-/ÂÄÀÁ\
         ÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ€µ~stuvwxyz¡¿ÐÝÞ®^£¥·©§¶¼½\
         ¾[]¯¨´×{ABCDEFGHI\u{ad}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³ÛÜÙÚ\u{9f}",
    ),
];

/// What numbers of pages have before them.
const PREFIXES: &[&str] = &["cp", "ibm", "csibm", "ccsid", "dos", "oem", "pc", "cspc8codepage", ""];

/// How `<?xm` begins on machines whose letters are not those of ASCII.
pub(super) const EBCDIC: &[u8] = b"\x4c\x6f\xa7\x94";

/// A code page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page(&'static str);

impl Page {
    /// A page by any of its names.
    pub(super) fn find(name: &str) -> Option<Self> {
        let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let number = |prefix: &&str| {
            let digits = name.strip_prefix(*prefix)?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.trim_start_matches('0')).filter(|it| !it.is_empty())
        };
        let wanted = PREFIXES.iter().find_map(number).unwrap_or(&name);
        let has = |names: &str| names.split(' ').any(|it| it == wanted);
        PAGES.iter().find(|(names, _)| has(names)).map(|(_, letters)| Self(letters))
    }

    /// The page of most documents that begin with [`EBCDIC`].
    pub(super) fn usual() -> Option<Self> {
        Self::find("cp037")
    }

    /// Whether its letters are not those of ASCII.
    pub(super) fn is_ebcdic(self) -> bool {
        !self.0.starts_with(|letter: char| !letter.is_ascii())
    }

    pub(super) fn decode(self, bytes: &[u8]) -> String {
        let letters: Vec<char> = self.0.chars().collect();
        let ascii = 256 - letters.len();
        let letter = |byte: &u8| match usize::from(*byte).checked_sub(ascii) {
            Some(index) => letters.get(index).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
            None => char::from(*byte),
        };
        bytes.iter().map(letter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_letter_for_each_byte() {
        for (names, letters) in PAGES {
            let is_ebcdic = Page(letters).is_ebcdic();
            assert_eq!(letters.chars().count(), if is_ebcdic { 256 } else { 128 }, "{names}");
            let markup = if is_ebcdic { "\x4c\u{6f}" } else { "<?" };
            let markup: Vec<u8> = markup.chars().map(|it| u8::try_from(it).unwrap()).collect();
            assert_eq!(Page(letters).decode(&markup), "<?", "{names}");
        }
    }

    #[test]
    fn pages_are_known_by_many_names() {
        for name in ["cp437", "IBM437", "ibm_437", "437", "csPC8CodePage437", "cp00437"] {
            let page = Page::find(&name.to_lowercase());
            assert_eq!(page.map(|page| page.decode(b"a\x82")).as_deref(), Some("aé"), "{name}");
        }
        for (name, byte, letter) in [
            ("cp850", 0xd0, 'ð'),
            ("cp855", 0xa0, 'а'),
            ("x-mac-ce", 0x88, 'ą'),
            ("cp500", 0xc1, 'A'),
            ("ebcdic-cp-us", 0x5a, '!'),
            ("ibm1026", 0x5a, 'Ğ'),
        ] {
            let page = Page::find(name).unwrap();
            assert_eq!(page.decode(&[byte]), letter.to_string(), "{name}");
        }
        assert!(Page::find("cp").is_none() && Page::find("nonsense").is_none());
    }
}

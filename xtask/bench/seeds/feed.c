/* What the changed Expat runs: documents with namespaces, attributes, entities and several encodings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "expat.h"

static unsigned long sum;

static void add(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) sum = sum * 31 + (unsigned char)text[i];
}
static void XMLCALL start(void *data, const char *name, const char **attributes) {
    add(name, strlen(name));
    for (; *attributes; attributes++) add(*attributes, strlen(*attributes));
}
static void XMLCALL end(void *data, const char *name) { add(name, 1); }
static void XMLCALL text(void *data, const char *text, int length) { add(text, length); }
static void XMLCALL comment(void *data, const char *text) { add(text, strlen(text)); }

static void parse(const char *encoding, const char *document, size_t length, size_t step) {
    XML_Parser parser = encoding[0] == '+' ? XML_ParserCreateNS(encoding + 1, '|') : XML_ParserCreate(encoding);
    XML_SetHashSalt(parser, 24301);
    XML_SetElementHandler(parser, start, end);
    XML_SetCharacterDataHandler(parser, text);
    XML_SetCommentHandler(parser, comment);
    for (size_t at = 0; at < length; at += step) {
        size_t part = length - at < step ? length - at : step;
        if (XML_Parse(parser, document + at, (int)part, at + part == length) == XML_STATUS_ERROR) {
            fprintf(stderr, "%s\n", XML_ErrorString(XML_GetErrorCode(parser)));
            exit(1);
        }
    }
    add("", 1);
    sum += XML_GetCurrentLineNumber(parser);
    XML_ParserFree(parser);
}

int main(void) {
    static char document[400000];
    size_t length = 0;
    length += sprintf(document + length,
        "<?xml version='1.0'?>\n<!DOCTYPE orders [<!ELEMENT orders ANY><!ENTITY who 'a customer'>"
        "<!ATTLIST order kind (new|old) 'new'>]>\n<orders xmlns='urn:a' xmlns:x='urn:b'>\n");
    for (int i = 0; i < 700; i++)
        length += sprintf(document + length,
            "<order id='%d' x:value='%d &amp; more'>\n  <item name=\"item %d\"/>\n  <!-- number %d -->"
            "<text>&who; wants %d &lt; %d <![CDATA[<raw>]]> &#65;</text></order>\n",
            i, i * 7919 % 499, i % 97, i, i, i + 1);
    length += sprintf(document + length, "</orders>\n");
    parse("+UTF-8", document, length, 4096);
    parse("ISO-8859-1", document, length, 1000);
    parse("+US-ASCII", document, length, length);
    printf("%lu\n", sum);
    return 0;
}

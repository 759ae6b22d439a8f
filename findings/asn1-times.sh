#!/usr/bin/env bash
# Times of ASN.1 (X.680), with which certificates, LDAP and mobile networks write theirs, in eleven
# libraries. A UTCTime of the year 50 is 1950 by RFC 5280, and 2050 in five. Of an offset of an
# hour, asn1.js and its fork know nothing; asn1js, that of PKI.js, makes 1899 of a UTCTime with it
# or without seconds, and 1 January, 09:00, of a GeneralizedTime of the 15th, 08:00. asn1.js drops
# fractions of a second, too. Half past eight as 08.5 is right in two, half a second past eight in
# pyasn1, and half a second past 00:08 in asn1tools.
# Guessed before the run: 50 is 1950 in all but one or two; offsets are right in half, and refused
# by the others; fractions are right.
. "$(dirname "$0")/lib.sh"
# Name, tag, text.
export CASES="1950|23|500101000000Z
UTC offset|23|270115080000+0100
UTC minutes|23|2701150800Z
fraction|24|20270115080000.5Z
offset|24|20270115080000+0100
half an hour|24|2027011508.5Z"
python pyasn1==0.6.5 asn1crypto==1.5.1 asn1tools==0.169.0 <<'PYTHON'
import datetime
import os

import asn1crypto.core
import asn1tools
from pyasn1.codec.ber.decoder import decode

SCHEMA = asn1tools.compile_string(
    "A DEFINITIONS ::= BEGIN T ::= CHOICE { a UTCTime, b GeneralizedTime } END", "ber")
READERS = {
    "pyasn1": lambda data: decode(data)[0].asDateTime,
    "asn1crypto": lambda data: asn1crypto.core.load(data).native,
    "asn1tools": lambda data: SCHEMA.decode("T", data)[1],
}
for line in os.environ["CASES"].split("\n"):
    name, tag, text = line.split("|")
    for library, read in READERS.items():
        try:
            time = read(bytes([int(tag), len(text)]) + text.encode())
            if time.tzinfo:
                time = time.astimezone(datetime.timezone.utc).replace(tzinfo=None)
            time = time.isoformat("T", "milliseconds")
        except Exception:
            time = "error"
        print(f"{name}|{time}|{library}")
PYTHON
mv "$work/seen" "$work/all"
node asn1.js@5.4.1 @panva/asn1.js@1.0.0 asn1js@4.0.0 @lapo/asn1js@2.1.3 node-forge@1.4.3 \
  @fidm/asn1@1.0.4 jsrsasign@11.1.5 <<'JS'
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const byModel = (name) => {
  const Time = require(name).define("Time", function () {
    this.choice({ a: this.utctime(), b: this.gentime() });
  });
  return (data) => new Date(Number(Time.decode(data, "der").value));
};
const forge = require("node-forge").asn1;
const readers = {
  "asn1.js": byModel("asn1.js"),
  "@panva/asn1.js": byModel("@panva/asn1.js"),
  asn1js: (data) => require("asn1js").fromBER(new Uint8Array(data).buffer).result.toDate(),
  "@lapo/asn1js": (data) => {
    const [, day, time, zone] =
      /^(\S+) (\S+) UTC(\S*)$/.exec(require("@lapo/asn1js").ASN1.decode(data).content());
    return new Date(`${day}T${time}${zone || "Z"}`);
  },
  "node-forge": (data) => {
    const { value } = forge.fromDer(data.toString("binary"));
    return data[0] === 23 ? forge.utcTimeToDate(value) : forge.generalizedTimeToDate(value);
  },
  "@fidm/asn1": (data) => require("@fidm/asn1").ASN1.fromDER(data).value,
  jsrsasign: (data) => require("jsrsasign").zulutodate(data.subarray(2).toString()),
};
for (const line of process.env.CASES.split("\n")) {
  const [name, tag, text] = line.split("|");
  for (const [library, read] of Object.entries(readers)) {
    let time = "error";
    try {
      const data = Buffer.concat([Buffer.from([Number(tag), text.length]), Buffer.from(text)]);
      time = read(data).toISOString().slice(0, 23);
    } catch {}
    console.log(`${name}|${time}|${library}`);
  }
}
JS
cat "$work/seen" >>"$work/all"
java org.bouncycastle:bcprov-jdk18on:1.82 <<'JAVA'
import java.text.SimpleDateFormat;
import java.util.TimeZone;
import org.bouncycastle.asn1.ASN1GeneralizedTime;
import org.bouncycastle.asn1.ASN1Primitive;
import org.bouncycastle.asn1.ASN1UTCTime;

class Main {
    public static void main(String[] none) {
        SimpleDateFormat format = new SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS");
        format.setTimeZone(TimeZone.getTimeZone("UTC"));
        for (String line : System.getenv("CASES").split("\n")) {
            String[] part = line.split("\\|");
            byte[] data = new byte[part[2].length() + 2];
            data[0] = Byte.parseByte(part[1]);
            data[1] = (byte) part[2].length();
            System.arraycopy(part[2].getBytes(), 0, data, 2, part[2].length());
            String time = "error";
            try {
                var read = ASN1Primitive.fromByteArray(data);
                time = format.format(read instanceof ASN1UTCTime utc
                        ? utc.getAdjustedDate() : ((ASN1GeneralizedTime) read).getDate());
            } catch (Exception e) {
                time = "error";
            }
            System.out.println(part[0] + "|" + time + "|Bouncy Castle");
        }
    }
}
JAVA
cat "$work/seen" >>"$work/all"
# The times of each case, and who reads it so.
who
seen <<'SEEN'
1950: 1950-01-01T00:00:00.000: asn1crypto, asn1js, node-forge, @fidm/asn1, jsrsasign, Bouncy
Castle
1950: 2050-01-01T00:00:00.000: pyasn1, asn1tools, asn1.js, @panva/asn1.js, @lapo/asn1js
UTC minutes: 1899-11-30T00:00:00.000: asn1js
UTC minutes: 2027-01-15T08:00:00.000: pyasn1, asn1crypto, asn1tools, asn1.js, @panva/asn1.js,
@lapo/asn1js, node-forge, @fidm/asn1, Bouncy Castle
UTC minutes: error: jsrsasign
UTC offset: 1899-11-30T00:00:00.000: asn1js
UTC offset: 2027-01-15T07:00:00.000: pyasn1, asn1crypto, asn1tools, @lapo/asn1js, node-forge,
@fidm/asn1, Bouncy Castle
UTC offset: 2027-01-15T08:00:00.000: asn1.js, @panva/asn1.js
UTC offset: error: jsrsasign
fraction: 2027-01-15T08:00:00.000: asn1.js, @panva/asn1.js
fraction: 2027-01-15T08:00:00.500: pyasn1, asn1crypto, asn1tools, asn1js, @lapo/asn1js,
node-forge, @fidm/asn1, jsrsasign, Bouncy Castle
half an hour: 2027-01-15T00:08:00.500: asn1tools
half an hour: 2027-01-15T08:00:00.000: asn1.js, @panva/asn1.js
half an hour: 2027-01-15T08:00:00.500: pyasn1
half an hour: 2027-01-15T08:30:00.000: asn1crypto, asn1js
half an hour: error: @lapo/asn1js, node-forge, @fidm/asn1, jsrsasign, Bouncy Castle
offset: 2027-01-01T09:00:00.000: asn1js
offset: 2027-01-15T07:00:00.000: pyasn1, asn1crypto, asn1tools, @lapo/asn1js, node-forge,
@fidm/asn1, Bouncy Castle
offset: 2027-01-15T08:00:00.000: asn1.js, @panva/asn1.js
offset: error: jsrsasign
SEEN

#!/usr/bin/env bash
# "R5/2027-01-31T10:00:00Z/P1M", each month from 31 January on, as ISO 8601 writes it and BPMN's
# timers take it. metomi-isodatetime 1!3.1.0 (of the scheduler Cylc), Camunda 7.24.0 and Zeebe 8.7.0
# add the month to the last date, so that after February all are on the 28th. With
# "R5/P1M/2027-05-31", the first of these leaves out 31 May itself. aniso8601 10.0.1 adds 30 days,
# and SpiffWorkflow 3.1.1 the 31 of January.
# Guessed before the run: 28 February, then 31 March again; 30 days in one or two.
. "$(dirname "$0")/lib.sh"
python aniso8601==10.0.1 'metomi-isodatetime==1!3.1.0' SpiffWorkflow==3.1.1 <<'PYTHON'
import aniso8601
from metomi.isodatetime.parsers import TimeRecurrenceParser
from SpiffWorkflow.bpmn.specs.event_definitions.timer import TimerEventDefinition

FORWARD = "R5/2027-01-31T10:00:00Z/P1M"


def show(name, dates):
    print(f"{name}:", *(str(date)[5:10] for date in dates))


show("metomi", TimeRecurrenceParser().parse(FORWARD))
show("metomi, to 31 May", TimeRecurrenceParser().parse("R5/P1M/2027-05-31T10:00:00Z"))
show("aniso8601", aniso8601.parse_repeating_interval(FORWARD))
count, start, period = TimerEventDefinition.parse_iso_recurring_interval(FORWARD)
show("SpiffWorkflow", [start + n * period for n in range(count)])
PYTHON
mv "$work/seen" "$work/all"
java org.camunda.bpm:camunda-engine:7.24.0 io.camunda:zeebe-bpmn-model:8.7.0 <<'JAVA'
import io.camunda.zeebe.model.bpmn.util.time.RepeatingInterval;
import java.time.Instant;
import java.util.Date;
import java.util.TimeZone;
import org.camunda.bpm.engine.impl.calendar.DurationHelper;

public class Main {
    public static void main(String[] args) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
        Instant now = Instant.parse("2027-01-01T00:00:00Z");
        var helper = new DurationHelper("R5/2027-01-31T10:00:00/P1M", Date.from(now));
        String dates = "Camunda:";
        for (int n = 0; n < 5; n++) {
            Instant due = helper.getDateAfter(Date.from(now)).toInstant();
            dates += " " + due.toString().substring(5, 10);
            now = due.plusSeconds(1);
        }
        System.out.println(dates);
        var timer = RepeatingInterval.parse("R5/2027-01-31T10:00:00Z/P1M");
        long millis = 0;
        dates = "Zeebe:";
        for (int n = 5; n > 0; n--) {
            millis = timer.getDueDate(millis);
            dates += " " + Instant.ofEpochMilli(millis).toString().substring(5, 10);
            timer = new RepeatingInterval(n - 1, timer.getInterval());
        }
        System.out.println(dates);
    }
}
JAVA
cat "$work/seen" >>"$work/all"
mv "$work/all" "$work/seen"
seen <<'SEEN'
metomi: 01-31 02-28 03-28 04-28 05-28
metomi, to 31 May: 01-28 02-28 03-28 04-28 05-28
aniso8601: 01-31 03-02 04-01 05-01 05-31
SpiffWorkflow: 01-31 03-03 04-03 05-04 06-04
Camunda: 01-31 02-28 03-28 04-28 05-28
Zeebe: 01-31 02-28 03-28 04-28 05-28
SEEN

select
    event:properties.net::string as network,
    count(*) as quakes,
    max(event:properties.mag::double) as strongest
from quakes
where event:properties.mag::double >= 5
group by all
